/// A type in a schema file.
indirect enum SchemaType: Hashable, Sendable {
    /// A type without parts, such as `String` or `Int64`.
    case plain(String)
    case array(SchemaType)
    case set(SchemaType)
    case range(SchemaType)
    case optional(SchemaType)
    /// A value that is kept as JSON where it does not decode.
    case tolerant(SchemaType)
    case record(key: SchemaType, SchemaType)
    case map(key: SchemaType, SchemaType)
    /// A definition of the file, with its generic arguments.
    case named(String, [SchemaType])
    /// A generic parameter of the enclosing definition.
    case parameter(String)
    /// The name of an actor of this type.
    case reference(String)
    /// TypeScript from a comment.
    case typeScript(String)

    /// Returns the type with its generic parameters replaced.
    func replacing(_ parameters: [String: SchemaType]) -> SchemaType {
        switch self {
        case .parameter(let name): parameters[name] ?? self
        case .array(let element): .array(element.replacing(parameters))
        case .set(let element): .set(element.replacing(parameters))
        case .range(let bound): .range(bound.replacing(parameters))
        case .optional(let wrapped): .optional(wrapped.replacing(parameters))
        case .tolerant(let wrapped): .tolerant(wrapped.replacing(parameters))
        case .record(let key, let value): .record(key: key.replacing(parameters), value.replacing(parameters))
        case .map(let key, let value): .map(key: key.replacing(parameters), value.replacing(parameters))
        case .named(let name, let arguments): .named(name, arguments.map { $0.replacing(parameters) })
        case .plain, .reference, .typeScript: self
        }
    }
}

extension SchemaType: Decodable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case array, set, range, optional, tolerant, record, map, key, named, arguments, parameter, reference, typeScript
    }

    init(from decoder: any Decoder) throws {
        if let name = try? decoder.singleValueContainer().decode(String.self) {
            self = .plain(name)
            return
        }
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func type(_ key: CodingKeys) throws -> SchemaType { try container.decode(SchemaType.self, forKey: key) }
        func text(_ key: CodingKeys) throws -> String { try container.decode(String.self, forKey: key) }
        switch CodingKeys.allCases.first(where: container.contains) {
        case .array: self = .array(try type(.array))
        case .set: self = .set(try type(.set))
        case .range: self = .range(try type(.range))
        case .optional: self = .optional(try type(.optional))
        case .tolerant: self = .tolerant(try type(.tolerant))
        case .record: self = .record(key: try type(.key), try type(.record))
        case .map: self = .map(key: try type(.key), try type(.map))
        case .named:
            let arguments = try container.decodeIfPresent([SchemaType].self, forKey: .arguments)
            self = .named(try text(.named), arguments ?? [])
        case .parameter: self = .parameter(try text(.parameter))
        case .reference: self = .reference(try text(.reference))
        case .typeScript: self = .typeScript(try text(.typeScript))
        case .key, .arguments, nil:
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "an unknown type"))
        }
    }
}

extension SchemaType: CustomStringConvertible {
    /// The type in Swift syntax.
    var description: String {
        switch self {
        case .plain(let name), .parameter(let name), .reference(let name), .typeScript(let name): name
        case .array(let element): "[\(element)]"
        case .set(let element): "Set<\(element)>"
        case .range(let bound): "Range<\(bound)>"
        case .optional(let wrapped): "\(wrapped)?"
        case .tolerant(let wrapped): "Tolerant<\(wrapped)>"
        case .record(let key, let value), .map(let key, let value): "[\(key): \(value)]"
        case .named(let name, let arguments):
            arguments.isEmpty ? name : "\(name)<\(arguments.map(\.description).joined(separator: ", "))>"
        }
    }
}
