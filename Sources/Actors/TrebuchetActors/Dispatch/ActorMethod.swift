package import Synchronization
internal import Transports

/// A method of an exposed actor, as calls look it up. It belongs to an `ActorType` and is never freed.
package final class ActorMethod: Sendable {
    /// A synchronous method with the actor's type and isolation erased. The caller runs on the actor's reactor and passes an
    /// actor of the type that the method belongs to.
    typealias Body = @Sendable (AnyObject, inout _CallArguments, inout _CallReply) throws -> Void

    /// Decodes the arguments of a method that may suspend and returns the call for a task. The record is of the type that the
    /// method belongs to.
    typealias Prepare = @Sendable (ActorRecord, inout _CallArguments) throws -> CallOperation

    package let name: String
    /// The name in watchdog reports about a blocked reactor: `TodoList.addTodo(title:)`.
    package let label: ActivityLabel
    let index: Int
    /// The row in which each reactor counts its calls.
    package let row: Int
    package let arguments: Int
    package let generics: Int
    /// Indicates whether responses are recorded for clients that request it.
    package let isIdempotent: Bool
    /// Indicates whether calls are checked before they may take the fast path: the method is idempotent, or a server of the process
    /// has a rate for it. It never becomes false again.
    package let isChecked: Atomic<Bool>
    /// Indicates whether the arguments are hidden from the inspector.
    package let isRedacted: Bool
    /// The function of a synchronous method, which may run in place; nil for others.
    let body: Body?
    /// The function of a method that may suspend; nil for others.
    let prepare: Prepare?

    init(
        name: String, actor: String, type: String, index: Int, arguments: Int, generics: Int, isIdempotent: Bool,
        isRedacted: Bool = false, body: Body?, prepare: Prepare?
    ) {
        self.name = name
        row = MethodHistogramIndex.registerMethod(name, of: type)
        label = .permanent("\(actor).\(name)")
        self.index = index
        self.arguments = arguments
        self.generics = generics
        self.isIdempotent = isIdempotent
        isChecked = Atomic(isIdempotent)
        self.isRedacted = isRedacted
        self.body = body
        self.prepare = prepare
    }

    package var runsInPlace: Bool { body != nil }
}
