internal import SwiftReading

/// The content of a client: actors, and the types that they use.
package struct ClientModel: Sendable {
    /// A member of an object.
    package struct Member: Sendable {
        /// The name in JSON.
        package let name: String
        package var type: WireType
        /// True if the member is omitted when it is nil.
        package var isOptional = false
        package var documentation: [String] = []
    }

    /// A case of an enum with payloads.
    package struct Case: Sendable {
        package let name: String
        package var members: [Member] = []
        package var documentation: [String] = []
    }

    /// A raw value in JSON.
    package enum RawValue: Hashable, Sendable {
        case string(String)
        /// The text of a number.
        case number(String)
    }

    /// The coded form of a type.
    package enum Form: Sendable {
        /// An object.
        case structure([Member])
        /// One of several values.
        case rawValues([(name: String, value: RawValue)])
        /// An object with one member, the case.
        case union([Case])
        /// A `RawRepresentable` struct, represented by its raw value.
        case id(WireType)
        /// The TypeScript type given in a comment.
        case custom(String)
    }

    /// A type that the client declares.
    package struct Definition: Sendable {
        /// The name in TypeScript.
        package let name: String
        /// The name in Swift, such as `TodoList.State`.
        package let swiftName: String
        package let parameters: [String]
        package let documentation: [String]
        package var form: Form
    }

    /// A parameter of a method.
    package struct Parameter: Sendable {
        package let name: String
        package let type: WireType
    }

    /// A distributed method.
    package struct Method: Sendable {
        package var name: String
        /// The name at the server: `addTodo(title:)`.
        package let target: String
        /// The name in Swift, without parentheses.
        let baseName: String
        let labels: [String]
        package let parameters: [Parameter]
        /// The result type; nil for a method without a result.
        package let result: WireType?
        /// The typed error, if any, with the name of its type.
        package let error: (swiftName: String, type: WireType)?
        package let isIdempotent: Bool
        package let documentation: [String]
        let location: SourcePosition
        /// The route over HTTP, if any, with the names of the parameters in requests.
        var route: (attribute: HTTPAttribute, names: [String])?
    }

    /// A streamed state, or a stream of events.
    package struct Stream: Sendable {
        package let name: String
        package let target: String
        package let type: WireType
        package let documentation: [String]
        let location: SourcePosition
    }

    /// An actor, or a `@Resolvable` protocol.
    package struct Actor: Sendable {
        package let name: String
        package let swiftName: String
        /// True for a `@Resolvable` protocol.
        package let isProtocol: Bool
        package let documentation: [String]
        package var methods: [Method] = []
        package var states: [Stream] = []
        package var events: [Stream] = []
        let location: SourcePosition
    }

    /// The actors in the order of their names.
    package var actors: [Actor] = []
    package var definitions: [Int: Definition] = [:]

    /// The definitions in the order of their names.
    package var sortedDefinitions: [(id: Int, definition: Definition)] {
        definitions.sorted { $0.value.name < $1.value.name }.map { (id: $0.key, definition: $0.value) }
    }
}
