/// The JSON schemas (2020-12) of the types in a document, by name. A generic type has a schema for each use.
struct OpenAPISchemas {
    /// The name of the schema of problem documents.
    static let problem = "Problem"

    private let model: ClientModel
    private var finished: [String: OrderedJSON] = [Self.problem: Self.problemSchema]
    /// The types by their names in the document, with those that are being written.
    private var types: [String: WireType] = [:]

    init(_ model: ClientModel) { self.model = model }

    /// All schemas in the order of their names.
    var all: [(String, OrderedJSON)] { finished.sorted { $0.key < $1.key } }

    mutating func schema(_ type: WireType) -> OrderedJSON {
        switch type {
        case .string: return Self.simple("string")
        case .boolean: return Self.simple("boolean")
        case .url: return Self.simple("string", format: "uri")
        case .uuid: return Self.simple("string", format: "uuid")
        case .date: return Self.simple("string", format: "date-time")
        case .data: return .object([("type", .string("string")), ("contentEncoding", .string("base64"))])
        case .decimal: return Self.simple("number")
        case .number(let name), .bigint(let name): return Self.number(name)
        case .array(let element): return Self.array(schema(element))
        case .set(let element): return Self.array(schema(element), [("uniqueItems", .boolean(true))])
        case .range(let bound):
            let bound = schema(bound)
            return OpenAPIWriter.tuple([bound, bound])
        case .record(_, let value):
            return .object([("type", .string("object")), ("additionalProperties", schema(value))])
        case .map(let key, let value):
            return Self.array(.object([("anyOf", .array([schema(key), schema(value)]))]))
        case .optional(let wrapped):
            return .object([("anyOf", .array([schema(wrapped.unwrapped), Self.simple("null")]))])
        // An unknown value of a later version may have any form.
        case .tolerant(let wrapped): return .object([("anyOf", .array([schema(wrapped), .object([])]))])
        case .named(let id, let arguments): return reference(id, arguments, type)
        case .reference: return Self.simple("string")
        case .custom(let text): return .object([("description", .string("TypeScript: \(text)"))])
        case .parameter, .unknown: return .object([])
        }
    }

    // MARK: Named types

    private mutating func reference(_ id: Int, _ arguments: [WireType], _ type: WireType) -> OrderedJSON {
        guard let definition = model.definitions[id] else { return .object([]) }
        let parts = [definition.name] + arguments.map { shortName(of: $0) }
        let base = String(parts.joined(separator: "_").map { Self.isNameCharacter($0) ? $0 : "_" })
        // Other types may have the same name after the replacement of characters.
        var (name, number) = (base == Self.problem ? base + "_" : base, 2)
        while let other = types[name], other != type { (name, number) = ("\(base)_\(number)", number + 1) }
        if types.updateValue(type, forKey: name) == nil {
            let values = Dictionary(zip(definition.parameters, arguments)) { first, _ in first }
            var schema = form(definition.form, values)
            let description = OpenAPIWriter.description(definition.documentation)
            if !description.isEmpty { schema = .object(description + schema.members) }
            finished[name] = schema
        }
        return OpenAPIWriter.reference("schemas", name)
    }

    private static func isNameCharacter(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_")
    }

    /// Returns a short name of a generic argument.
    private func shortName(of type: WireType) -> String {
        switch type {
        case .named(let id, let arguments):
            ([model.definitions[id]?.name ?? ""] + arguments.map { shortName(of: $0) }).joined(separator: "_")
        case .number(let name), .bigint(let name): name
        case .array(let element), .set(let element): shortName(of: element) + "Array"
        case .optional(let wrapped): shortName(of: wrapped) + "Optional"
        case .tolerant(let wrapped): shortName(of: wrapped) + "Tolerant"
        case .reference(let actor): actor
        case .record(_, let value), .map(_, let value): shortName(of: value) + "Dictionary"
        case .range(let bound): shortName(of: bound) + "Range"
        case .parameter, .custom, .unknown: "Any"
        default: "\(type)".prefix(1).uppercased() + "\(type)".dropFirst()
        }
    }

    private mutating func form(_ form: ClientModel.Form, _ values: [String: WireType]) -> OrderedJSON {
        switch form {
        case .structure(let members): return object(members, values)
        case .rawValues(let cases):
            let isText = cases.allSatisfy { if case .string = $0.value { true } else { false } }
            let listed = cases.map { each -> OrderedJSON in
                switch each.value {
                case .string(let text): .string(text)
                case .number(let text): .number(text)
                }
            }
            return .object([("type", .string(isText ? "string" : "number")), ("enum", .array(listed))])
        case .union(let cases):
            var each: [OrderedJSON] = []
            for one in cases { each.append(object(one, values)) }
            return .object([("oneOf", .array(each))])
        case .id(let raw): return schema(raw.replacing(values))
        case .custom(let text): return schema(.custom(text))
        }
    }

    /// Returns the schema of a case with payloads: an object with one member, the case.
    private mutating func object(_ one: ClientModel.Case, _ values: [String: WireType]) -> OrderedJSON {
        .object([
            ("type", .string("object")), ("properties", .object([(one.name, object(one.members, values))])),
            ("required", .array([.string(one.name)])), ("additionalProperties", .boolean(false)),
        ])
    }

    private mutating func object(_ members: [ClientModel.Member], _ values: [String: WireType]) -> OrderedJSON {
        var properties: [(String, OrderedJSON)] = []
        for member in members {
            let type = member.type.replacing(values)
            var schema = schema(member.isOptional ? type.unwrapped : type)
            let description = OpenAPIWriter.description(member.documentation)
            if !description.isEmpty { schema = .object(description + schema.members) }
            properties.append((member.name, schema))
        }
        let required = members.filter { !$0.isOptional }.map { OrderedJSON.string($0.name) }
        return .object(
            [("type", .string("object")), ("properties", .object(properties))]
                + (required.isEmpty ? [] : [("required", .array(required))]))
    }

    // MARK: Simple types

    private static func simple(_ type: String, format: String? = nil) -> OrderedJSON {
        .object([("type", .string(type))] + (format.map { [("format", .string($0))] } ?? []))
    }

    private static func array(_ items: OrderedJSON, _ more: [(String, OrderedJSON)] = []) -> OrderedJSON {
        .object([("type", .string("array")), ("items", items)] + more)
    }

    private static func number(_ name: String) -> OrderedJSON {
        guard name.contains("Int") else { return simple("number") }
        var members: [(String, OrderedJSON)] = [("type", .string("integer"))]
        if name.hasSuffix("64") || name == "Int" || name == "UInt" { members.append(("format", .string("int64"))) }
        if name == "Int32" { members.append(("format", .string("int32"))) }
        if name.hasPrefix("U") { members.append(("minimum", .number("0"))) }
        return .object(members)
    }

    private static var problemSchema: OrderedJSON {
        let properties: [(String, OrderedJSON)] = [
            ("type", simple("string", format: "uri-reference")), ("title", simple("string")),
            ("status", simple("integer")), ("code", simple("string")), ("detail", simple("string")),
            ("errorType", simple("string")), ("data", .object([])), ("retryAfterMilliseconds", simple("integer")),
        ]
        return .object([
            ("type", .string("object")), ("properties", .object(properties)),
            ("required", .array(["type", "title", "status", "detail"].map { .string($0) })),
        ])
    }
}
