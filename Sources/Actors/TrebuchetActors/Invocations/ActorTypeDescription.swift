/// An actor type as its dispatch table describes it.
package struct ActorTypeDescription: Encodable, Sendable {
    /// A method of the type.
    package struct Method: Encodable, Sendable {
        /// The wire name, such as `addTodo(title:)`.
        package let target: String
        package let arguments: Int
        package let isIdempotent: Bool
        package let isGeneric: Bool

        /// The names of the members in JSON.
        private enum CodingKeys: String, CodingKey {
            case target, arguments
            case isIdempotent = "idempotent"
            case isGeneric = "generic"
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(target, forKey: .target)
            try container.encode(arguments, forKey: .arguments)
            // False values are omitted.
            if isIdempotent { try container.encode(true, forKey: .isIdempotent) }
            if isGeneric { try container.encode(true, forKey: .isGeneric) }
        }
    }

    package let type: String
    package let methods: [Method]
    package var states: [String]
    package var events: [String]
}
