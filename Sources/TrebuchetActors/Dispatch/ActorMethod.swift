internal import Transports

/// A method of an exposed actor, as calls find it. It belongs to an `ActorType` and is never freed.
package final class ActorMethod: Sendable {
    /// A synchronous method that takes its actor with neither its type nor its isolation: whoever calls it is on the
    /// actor's reactor and passes an actor of the type that the method belongs to.
    typealias Body = @Sendable (AnyObject, inout _CallArguments, inout _CallReply) throws -> Void

    /// Decodes the arguments of a method that may suspend and gives the call that a task is to run, for a record of the type that the
    /// method belongs to.
    typealias Prepare = @Sendable (ActorRecord, inout _CallArguments) throws -> CallOperation

    package let name: String
    /// What the watchdog says of a reactor that it holds: `TodoList.addTodo(title:)`.
    package let label: ActivityLabel
    let index: Int
    /// Where its calls are counted on each reactor.
    package let row: Int
    package let arguments: Int
    package let generics: Int
    /// Whether its answers are kept for clients that ask for it.
    package let isIdempotent: Bool
    /// Whether its arguments are shown to nobody.
    package let isRedacted: Bool
    /// Set when it is synchronous and may run in place.
    let body: Body?
    /// Set when it may suspend.
    let prepare: Prepare?

    init(
        name: String, actor: String, type: String, index: Int, arguments: Int, generics: Int, isIdempotent: Bool,
        isRedacted: Bool = false, body: Body?, prepare: Prepare?
    ) {
        self.name = name
        row = MethodRows.add(name, of: type)
        label = .immortal("\(actor).\(name)")
        self.index = index
        self.arguments = arguments
        self.generics = generics
        self.isIdempotent = isIdempotent
        self.isRedacted = isRedacted
        self.body = body
        self.prepare = prepare
    }

    package var runsInPlace: Bool { body != nil }
}
