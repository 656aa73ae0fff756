/// Writes a model as one TypeScript file.
struct TypeScriptWriter {
    private let model: ClientModel
    private let runtime: String
    private let command: String
    private var codecs: CodecPlan

    init(_ model: ClientModel, runtime: String, command: String) {
        (self.model, self.runtime, self.command) = (model, runtime, command)
        let names = model.actors.map(\.name) + model.definitions.values.map(\.name)
        codecs = CodecPlan(model, takenNames: Set(names))
    }

    mutating func file() -> String {
        // Actors come first here, because they determine the required codecs.
        let actors = model.actors.map { actor($0) }
        let types = types()
        var sections = [
            "// \(command)\n// Generated from Swift sources. Do not edit; run the command again after they change.\n"
        ]
        sections.append(imports(hasUnions: types.hasUnions))
        sections += types.sections
        sections += codecs.constants.map { constant in
            "const \(constant.name): Codec<\(text(constant.type))> = \(constant.source)\n"
        }
        sections += actors
        return sections.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    // MARK: Head

    private func imports(hasUnions: Bool) -> String {
        var values = codecs.imports
        var types: Set<String> = []
        if !model.actors.isEmpty { values.insert("actorType") }
        if model.actors.contains(where: { !$0.methods.isEmpty }) { types.formUnion(["Call", "CallOptions"]) }
        if !codecs.constants.isEmpty { types.insert("Codec") }
        var lines = ""
        let from = TypeScriptText.quoted(runtime)
        if !values.isEmpty { lines += "import { \(values.sorted().joined(separator: ", ")) } from \(from)\n" }
        if !types.isEmpty { lines += "import type { \(types.sorted().joined(separator: ", ")) } from \(from)\n" }
        return lines
    }

    // MARK: Types

    private func types() -> (sections: [String], hasUnions: Bool) {
        var sections: [String] = []
        var hasUnions = false
        for (_, definition) in model.sortedDefinitions {
            if case .union = definition.form { hasUnions = true }
            sections.append(declaration(definition))
        }
        let used = UsedTypes(model)
        for name in used.references.sorted() {
            sections.append(
                "/** The name of an actor `\(name)`, for `client.actor`. */\n"
                    + Self.branded(Self.referenceName(name), as: "string"))
        }
        if used.hasDecimal {
            sections.append(
                "/** Swift's `Decimal`, as the text of the number. */\n" + Self.branded("Decimal", as: "string")
                    + "export function Decimal(text: string): Decimal {\n    return text as Decimal\n}\n")
        }
        if used.hasUUID {
            sections.append(
                "/** A UUID in capitals, as Swift writes it. */\n" + Self.branded("UUID", as: "string")
                    + "export function UUID(text: string): UUID {\n    return text.toUpperCase() as UUID\n}\n")
        }
        if hasUnions {
            sections.append(
                "/** A case of a newer server that is unknown to this file. */\n"
                    + "export interface UnknownCase {\n    readonly __unknownCase?: never\n}\n")
        }
        return (sections, hasUnions)
    }

    private static func branded(_ name: String, as raw: String) -> String {
        "export type \(name) = \(raw) & { readonly __brand: \(TypeScriptText.quoted(name)) }\n"
    }

    private func declaration(_ definition: ClientModel.Definition) -> String {
        let head = TypeScriptText.comment(definition.documentation)
        let parameters =
            definition.parameters.isEmpty
            ? "" : "<\(definition.parameters.map(TypeScriptText.typeParameter).joined(separator: ", "))>"
        let name = definition.name + parameters
        switch definition.form {
        case .structure(let members) where members.isEmpty:
            return head + "export type \(name) = Record<string, never>\n"
        case .structure(let members):
            let lines = members.map {
                TypeScriptText.comment($0.documentation, indent: "    ") + "    \(self.member($0))\n"
            }
            return head + "export interface \(name) {\n\(lines.joined())}\n"
        case .rawValues(let cases):
            let values = cases.map { literal($0.value) }
            return head + "export type \(name) =\(alternatives(values))\n"
        case .union(let cases): return head + "export type \(name) =\(union(cases))\n"
        case .id(let raw):
            let type = text(raw)
            return head + Self.branded(name, as: type)
                + "export function \(name)(value: \(type)): \(name) {\n    return value as \(name)\n}\n"
        case .custom(let type): return head + "export type \(name) = \(type)\n"
        }
    }

    private func union(_ cases: [ClientModel.Case]) -> String {
        let values = cases.map { "{ \(TypeScriptText.member($0.name)): \(object($0.members)) }" }
        guard cases.contains(where: { !$0.documentation.isEmpty }) else {
            return alternatives(values + ["UnknownCase"])
        }
        let lines = zip(cases, values).map { each, value in
            "\n" + TypeScriptText.comment(each.documentation, indent: "    ") + "    | \(value)"
        }
        return lines.joined() + "\n    | UnknownCase"
    }

    private func alternatives(_ values: [String]) -> String {
        let line = " " + values.joined(separator: " | ")
        if line.count <= 90 { return line }
        return values.map { "\n    | \($0)" }.joined()
    }

    private func literal(_ value: ClientModel.RawValue) -> String {
        switch value {
        case .string(let text): TypeScriptText.quoted(text)
        case .number(let text): text
        }
    }

    private func object(_ members: [ClientModel.Member]) -> String {
        members.isEmpty ? "Record<string, never>" : "{ \(members.map { member($0) }.joined(separator: "; ")) }"
    }

    private func member(_ member: ClientModel.Member) -> String {
        "\(TypeScriptText.member(member.name))\(member.isOptional ? "?" : ""): \(text(member.type))"
    }

    /// Returns the type of an actor's name.
    static func referenceName(_ actor: String) -> String { actor.split(separator: ".").joined() + "Reference" }

    /// Returns a type in TypeScript syntax.
    private func text(_ type: WireType) -> String {
        switch type {
        case .string, .url: "string"
        case .boolean: "boolean"
        case .uuid: "UUID"
        case .date: "Date"
        case .data: "Uint8Array"
        case .decimal: "Decimal"
        case .number: "number"
        case .bigint: "bigint"
        case .array(let element), .set(let element): "\(operand(element))[]"
        case .range(let bound): "[\(text(bound)), \(text(bound))]"
        case .record(.named(let id, let arguments), let value):
            "Partial<Record<\(text(.named(id, arguments))), \(text(value))>>"
        case .record(let key, let value): "Record<\(text(key)), \(text(value))>"
        case .map(let key, let value): "Map<\(text(key)), \(text(value))>"
        case .optional(let wrapped): wrapped.isOptional ? text(wrapped) : "\(operand(wrapped)) | null"
        case .tolerant(let wrapped): text(wrapped)
        case .named(let id, let arguments):
            (model.definitions[id]?.name ?? "never")
                + (arguments.isEmpty ? "" : "<\(arguments.map { text($0) }.joined(separator: ", "))>")
        case .parameter(let name): TypeScriptText.typeParameter(name)
        case .reference(let actor): Self.referenceName(actor)
        case .custom(let type): type
        case .unknown: "never"
        }
    }

    /// Returns a type in TypeScript syntax before `[]` or `|`.
    private func operand(_ type: WireType) -> String {
        switch type {
        case .optional, .custom: "(\(text(type)))"
        case .tolerant(let wrapped): operand(wrapped)
        default: text(type)
        }
    }

    // MARK: Actors

    private mutating func actor(_ actor: ClientModel.Actor) -> String {
        var shape: [String] = []
        var info: [String] = ["    name: \(TypeScriptText.quoted(actor.swiftName)),\n"]
        if !actor.methods.isEmpty {
            shape.append("    methods: {\n\(actor.methods.map { signature($0) }.joined())    }\n")
            info.append("    methods: {\n\(actor.methods.map { method($0) }.joined())    },\n")
        }
        for (name, streams) in [("states", actor.states), ("events", actor.events)] where !streams.isEmpty {
            let members = streams.map { stream in
                TypeScriptText.comment(stream.documentation, indent: "        ")
                    + "        \(TypeScriptText.member(stream.name)): \(text(stream.type))\n"
            }
            shape.append("    \(name): {\n\(members.joined())    }\n")
            info.append("    \(name): {\n\(streams.map { self.stream($0) }.joined())    },\n")
        }
        return TypeScriptText.comment(actor.documentation)
            + "export const \(actor.name) = /*#__PURE__*/ actorType<{\n\(shape.joined())}>({\n\(info.joined())})\n"
    }

    private func signature(_ method: ClientModel.Method) -> String {
        let names = TypeScriptText.parameters(method.parameters.map(\.name) + ["options"])
        let parameters =
            zip(names, method.parameters).map { "\($0): \(text($1.type))" } + [
                "\(names.last ?? "options")?: CallOptions"
            ]
        let result = method.result.map { text($0) } ?? "void"
        let call = method.error.map { "Call<\(result), \(text($0.type))>" } ?? "Call<\(result)>"
        return TypeScriptText.comment(method.documentation, indent: "        ")
            + "        \(TypeScriptText.member(method.name))(\(parameters.joined(separator: ", "))): \(call)\n"
    }

    private mutating func method(_ method: ClientModel.Method) -> String {
        var parts = ["target: \(TypeScriptText.quoted(method.target))"]
        let arguments = method.parameters.map { codecs.codec($0.type) }
        if arguments.contains(where: { $0 != nil }) {
            parts.append("arguments: [\(arguments.map { $0 ?? "undefined" }.joined(separator: ", "))]")
        }
        if let result = method.result.flatMap({ codecs.codec($0) }) { parts.append("result: \(result)") }
        if let error = method.error, let codec = codecs.codec(error.type) {
            // Errors are identified by the last component of their type's name.
            let name = error.swiftName.split(separator: ".").last.map(String.init) ?? error.swiftName
            parts.append("errors: { \(TypeScriptText.key(name)): \(codec) }")
        }
        if method.isIdempotent { parts.append("idempotent: true") }
        return "        \(TypeScriptText.key(method.name)): { \(parts.joined(separator: ", ")) },\n"
    }

    private mutating func stream(_ stream: ClientModel.Stream) -> String {
        let value = codecs.codec(stream.type).map { ", value: \($0)" } ?? ""
        return
            "        \(TypeScriptText.key(stream.name)): { target: \(TypeScriptText.quoted(stream.target))\(value) },\n"
    }
}

/// The types used in a model that need a declaration.
struct UsedTypes {
    private(set) var hasUUID = false
    private(set) var hasDecimal = false
    private(set) var references: Set<String> = []

    init(_ model: ClientModel) {
        for actor in model.actors {
            for method in actor.methods {
                for parameter in method.parameters { record(parameter.type) }
                if let result = method.result { record(result) }
                if let error = method.error { record(error.type) }
            }
            for stream in actor.states + actor.events { record(stream.type) }
        }
        for definition in model.definitions.values {
            switch definition.form {
            case .structure(let members): for member in members { record(member.type) }
            case .union(let cases): for member in cases.flatMap(\.members) { record(member.type) }
            case .id(let raw): record(raw)
            case .rawValues, .custom: break
            }
        }
    }

    private mutating func record(_ type: WireType) {
        switch type {
        case .uuid: hasUUID = true
        case .decimal: hasDecimal = true
        case .reference(let name): references.insert(name)
        case .array(let element), .set(let element), .range(let element), .optional(let element),
            .tolerant(let element):
            record(element)
        case .record(let key, let value), .map(let key, let value):
            record(key)
            record(value)
        case .named(_, let arguments): for argument in arguments { record(argument) }
        default: break
        }
    }
}
