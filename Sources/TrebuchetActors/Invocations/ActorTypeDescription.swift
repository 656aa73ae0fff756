/// A type of actors as its dispatch table knows it.
package struct ActorTypeDescription: Encodable, Sendable {
    package struct Method: Encodable, Sendable {
        /// `addTodo(title:)`
        package let target: String
        package let arguments: Int
        package let isIdempotent: Bool
        package let isGeneric: Bool

        private enum CodingKeys: String, CodingKey {
            case target, arguments
            case isIdempotent = "idempotent"
            case isGeneric = "generic"
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(target, forKey: .target)
            try container.encode(arguments, forKey: .arguments)
            // What says nothing is left out.
            if isIdempotent { try container.encode(true, forKey: .isIdempotent) }
            if isGeneric { try container.encode(true, forKey: .isGeneric) }
        }
    }

    package let type: String
    package let methods: [Method]
    package var states: [String]
    package var events: [String]
}
