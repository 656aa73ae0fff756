/// Determines the values that need a codec, and the codecs.
///
/// A type that is the same in JSON and in TypeScript has none. A generic type has one for each set of arguments that
/// needs one.
struct CodecPlan {
    /// A type with its generic arguments.
    struct Use: Hashable {
        let id: Int
        let arguments: [WireType]
    }

    let model: ClientModel
    private var needing: Set<Use> = []
    private var names: [Use: String] = [:]
    private var takenNames: Set<String>
    /// Constants, each after those that it uses.
    private(set) var constants: [(name: String, type: WireType, source: String)] = []
    private var emitted: Set<Use> = []
    private var inProgress: Set<Use> = []
    /// The imports from the runtime.
    private(set) var imports: Set<String> = []

    /// Creates a plan.
    ///
    /// - Parameter takenNames: names of other constants in the file.
    init(_ model: ClientModel, takenNames: Set<String>) {
        self.model = model
        self.takenNames = takenNames
    }

    // MARK: Codec requirements

    /// Returns true if a type needs a codec, because one of its members does. A recursive type needs one if another
    /// member does.
    mutating func needsCodec(_ type: WireType) -> Bool {
        var seen: Set<Use> = []
        return needsCodec(type, &seen)
    }

    private mutating func needsCodec(_ type: WireType, _ seen: inout Set<Use>) -> Bool {
        switch type {
        case .date, .data, .decimal, .bigint, .map: return true
        case .array(let element), .set(let element), .range(let element), .optional(let element),
            .tolerant(let element), .record(_, let element):
            return needsCodec(element, &seen)
        case .named(let id, let arguments):
            let use = Use(id: id, arguments: arguments)
            if needing.contains(use) { return true }
            guard seen.insert(use).inserted else { return false }
            for part in parts(of: use) where needsCodec(part, &seen) {
                needing.insert(use)
                return true
            }
            return false
        default: return false
        }
    }

    private func parts(of use: Use) -> [WireType] {
        switch model.definitions[use.id]?.form {
        case .structure(let members): members.map { $0.type.replacing(bindings(of: use)) }
        case .union(let cases): cases.flatMap(\.members).map { $0.type.replacing(bindings(of: use)) }
        case .id(let raw): [raw.replacing(bindings(of: use))]
        default: []
        }
    }

    private func bindings(of use: Use) -> [String: WireType] {
        Dictionary(zip(model.definitions[use.id]?.parameters ?? [], use.arguments)) { first, _ in first }
    }

    // MARK: Source

    /// Returns the codec expression of a type; nil if it needs none.
    mutating func codec(_ type: WireType) -> String? {
        guard needsCodec(type) else { return nil }
        switch type {
        case .date: return runtime("date")
        case .data: return runtime("data")
        case .decimal: return runtime("decimal")
        case .bigint: return runtime("bigint")
        case .array(let element), .set(let element), .range(let element): return call("array", [codec(element)])
        case .record(_, let element): return call("record", [codec(element)])
        case .optional(let wrapped):
            // Nested optionals have a single null.
            return wrapped.isOptional ? codec(wrapped) : call("nullable", [codec(wrapped)])
        case .tolerant(let wrapped): return codec(wrapped)
        case .map(let key, let value):
            let codecs = [codec(key), codec(value)]
            let arguments =
                codecs[1] == nil ? (codecs[0] == nil ? [] : [codecs[0]]) : [codecs[0] ?? "undefined", codecs[1]]
            return call("map", arguments)
        case .named(let id, let arguments): return constant(Use(id: id, arguments: arguments))
        default: return nil
        }
    }

    private mutating func runtime(_ name: String) -> String {
        imports.insert(name)
        return name
    }

    private mutating func call(_ name: String, _ arguments: [String?]) -> String {
        "/*#__PURE__*/ \(runtime(name))(\(arguments.compactMap(\.self).joined(separator: ", ")))"
    }

    private mutating func constant(_ use: Use) -> String {
        let name = name(of: use)
        if inProgress.contains(use) { return "/*#__PURE__*/ \(runtime("lazy"))(() => \(name))" }
        guard !emitted.contains(use) else { return name }
        inProgress.insert(use)
        let source = source(of: use)
        inProgress.remove(use)
        emitted.insert(use)
        constants.append((name, .named(use.id, use.arguments), source))
        return name
    }

    private mutating func source(of use: Use) -> String {
        let bindings = bindings(of: use)
        switch model.definitions[use.id]?.form {
        case .structure(let members): return structure(members, bindings, isTop: true)
        case .id(let raw): return codec(raw.replacing(bindings)).map { "\($0) as Codec<any>" } ?? ""
        case .union(let cases):
            var members: [String] = []
            for each in cases where each.members.contains(where: { needsCodec($0.type.replacing(bindings)) }) {
                members.append("\(TypeScriptText.key(each.name)): \(structure(each.members, bindings))")
            }
            return call("union", [literal(members, isTop: true)])
        default: return ""
        }
    }

    private mutating func structure(
        _ members: [ClientModel.Member], _ bindings: [String: WireType], isTop: Bool = false
    ) -> String {
        var parts: [String] = []
        for member in members {
            // The codec of a struct skips null members.
            guard let codec = codec(member.type.replacing(bindings).unwrapped) else { continue }
            parts.append("\(TypeScriptText.key(member.name)): \(codec)")
        }
        return call("struct", [literal(parts, isTop: isTop)])
    }

    /// Returns an object literal. A long literal of a constant has a line for each member.
    private func literal(_ members: [String], isTop: Bool) -> String {
        let line = members.joined(separator: ", ")
        return isTop && line.count > 60
            ? "{\n" + members.map { "    \($0),\n" }.joined() + "}" : "{ \(line) }"
    }

    private mutating func name(of use: Use) -> String {
        if let name = names[use] { return name }
        var name = describe(.named(use.id, use.arguments)) + "Codec"
        while !takenNames.insert(name).inserted { name += "_" }
        names[use] = name
        return name
    }

    /// Returns a name such as `PageOfTodoItem`.
    private func describe(_ type: WireType) -> String {
        switch type {
        case .named(let id, let arguments):
            (model.definitions[id]?.name ?? "")
                + (arguments.isEmpty ? "" : "Of" + arguments.map(describe).joined(separator: "And"))
        case .array(let element), .set(let element): "ArrayOf" + describe(element)
        case .range(let bound): "RangeOf" + describe(bound)
        case .record(_, let value): "RecordOf" + describe(value)
        case .map(let key, let value): "MapOf\(describe(key))And\(describe(value))"
        case .optional(let wrapped): "Optional" + describe(wrapped)
        case .tolerant(let wrapped): describe(wrapped)
        case .number(let name), .bigint(let name): name
        case .string: "String"
        case .boolean: "Bool"
        case .url: "URL"
        case .uuid: "UUID"
        case .date: "Date"
        case .data: "Data"
        case .decimal: "Decimal"
        default: "Value"
        }
    }
}
