/// What a client is made of: actors, and the types that they reach.
package struct ClientModel: Sendable {
    package struct Member: Sendable {
        /// As it stands in the JSON.
        package let name: String
        package var type: WireType
        /// Whether it is left out when it is nil.
        package var isOptional = false
        package var documentation: [String] = []
    }

    package struct Case: Sendable {
        package let name: String
        package var members: [Member] = []
        package var documentation: [String] = []
    }

    /// A raw value, as it stands in the JSON.
    package enum RawValue: Hashable, Sendable {
        case string(String)
        /// The text of a number.
        case number(String)
    }

    package enum Form: Sendable {
        /// An object.
        case structure([Member])
        /// One of several values.
        case rawValues([(name: String, value: RawValue)])
        /// An object with one member, the case.
        case union([Case])
        /// A `RawRepresentable` struct: its raw value.
        case id(WireType)
        /// Told by a comment.
        case told(String)
    }

    package struct Definition: Sendable {
        /// In TypeScript.
        package let name: String
        /// `TodoList.State`
        package let swiftName: String
        package let parameters: [String]
        package let documentation: [String]
        package var form: Form
    }

    package struct Parameter: Sendable {
        package let name: String
        package let type: WireType
    }

    package struct Method: Sendable {
        package var name: String
        /// As the server knows it: `addTodo(title:)`.
        package let target: String
        /// As it is called in Swift, without parentheses.
        let baseName: String
        let labels: [String]
        package let parameters: [Parameter]
        /// Nil for a method that returns nothing.
        package let result: WireType?
        /// What it throws, where that is typed, with the name of the type.
        package let error: (swiftName: String, type: WireType)?
        package let isIdempotent: Bool
        package let documentation: [String]
        let place: Place
    }

    package struct Stream: Sendable {
        package let name: String
        package let target: String
        package let type: WireType
        package let documentation: [String]
        let place: Place
    }

    package struct Actor: Sendable {
        package let name: String
        package let swiftName: String
        /// Whether it is a `@Resolvable` protocol.
        package let isProtocol: Bool
        package let documentation: [String]
        package var methods: [Method] = []
        package var states: [Stream] = []
        package var events: [Stream] = []
        let place: Place
    }

    /// In the order of their names.
    package var actors: [Actor] = []
    package var definitions: [Int: Definition] = [:]

    /// The definitions in the order of their names.
    package var sortedDefinitions: [(id: Int, definition: Definition)] {
        definitions.sorted { $0.value.name < $1.value.name }.map { (id: $0.key, definition: $0.value) }
    }
}
