internal import Foundation

/// The content of a schema file that a comparison uses.
struct SchemaDocument: Decodable, Sendable {
    struct Parameter: Decodable, Sendable {
        let name: String
        let type: SchemaType
    }

    struct Method: Decodable, Sendable {
        let target: String
        let parameters: [Parameter]
        let result: SchemaType?
        /// The typed error, by the name of its type.
        let error: Parameter?
        let idempotent: Bool?
    }

    /// A state or a stream of events.
    struct Stream: Decodable, Sendable {
        let name: String
        let target: String
        let type: SchemaType
        /// The version of the stored form; nil if the stream is not persisted.
        let storedVersion: Int?
    }

    struct Actor: Decodable, Sendable {
        let swiftName: String
        let methods: [Method]
        let states: [Stream]
        let events: [Stream]
        let privateStates: [Stream]?
        let privateEvents: [Stream]?

        var storedStates: [Stream] { (states + (privateStates ?? [])).filter { $0.storedVersion != nil } }
        var storedEvents: [Stream] { (events + (privateEvents ?? [])).filter { $0.storedVersion != nil } }
    }

    struct Member: Decodable, Sendable {
        let name: String
        let type: SchemaType
        /// True if the member is absent when it is nil.
        let isOptional: Bool

        private enum CodingKeys: String, CodingKey { case name, type, optional }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            type = try container.decode(SchemaType.self, forKey: .type)
            isOptional = try container.decodeIfPresent(Bool.self, forKey: .optional) ?? false
        }
    }

    struct Case: Decodable, Sendable {
        let name: String
        let members: [Member]
    }

    struct RawCase: Decodable, Sendable {
        enum Value: Decodable, Hashable, Sendable {
            case string(String)
            case number(Double)

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let text = try? container.decode(String.self) {
                    self = .string(text)
                } else {
                    self = .number(try container.decode(Double.self))
                }
            }
        }

        let name: String
        let value: Value
    }

    enum Form: Sendable {
        case structure([Member])
        case union([Case])
        case rawValues([RawCase])
        case id(SchemaType)
        case custom(String)
    }

    struct Definition: Decodable, Sendable {
        let name: String
        let swiftName: String
        /// The names of the generic parameters.
        let parameters: [String]
        let form: Form

        private enum CodingKeys: String, CodingKey {
            case name, swiftName, parameters, kind, members, cases, rawValue, typeScript
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            swiftName = try container.decode(String.self, forKey: .swiftName)
            parameters = try container.decodeIfPresent([String].self, forKey: .parameters) ?? []
            switch try container.decode(String.self, forKey: .kind) {
            case "struct": form = .structure(try container.decode([Member].self, forKey: .members))
            case "union": form = .union(try container.decode([Case].self, forKey: .cases))
            case "rawValues": form = .rawValues(try container.decode([RawCase].self, forKey: .cases))
            case "id": form = .id(try container.decode(SchemaType.self, forKey: .rawValue))
            case "custom": form = .custom(try container.decode(String.self, forKey: .typeScript))
            case let kind:
                throw DecodingError.dataCorruptedError(
                    forKey: .kind, in: container, debugDescription: "unknown kind '\(kind)'")
            }
        }
    }

    let format: String
    let version: Int
    let actors: [Actor]
    let types: [Definition]

    /// Reads a schema file.
    init(_ text: String) throws(SchemaError) {
        do {
            self = try JSONDecoder().decode(Self.self, from: Data(text.utf8))
        } catch {
            throw SchemaError("it is not a schema that 'trebuchet generate schema' has written (\(error))")
        }
        guard format == "trebuchet-schema" else {
            throw SchemaError("its 'format' is '\(format)', not 'trebuchet-schema'")
        }
        guard version == 1 else {
            throw SchemaError("its 'version' is \(version), and this program reads version 1")
        }
    }
}

/// The reason why a text is not a schema.
package struct SchemaError: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
