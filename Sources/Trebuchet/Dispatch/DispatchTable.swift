public import Distributed

/// The methods and streams of an actor type, by their names on the wire. Written by `@Trebuchet`.
public struct DispatchTable<A: DistributedActor>: Sendable {
    let methods: [DispatchMethod<A>]
    let streams: [DispatchStream<A>]
    let executor: TrebuchetExecutor

    public init(
        executor: TrebuchetExecutor = .reactor, methods: [DispatchMethod<A>], streams: [DispatchStream<A>]
    ) {
        self.executor = executor
        self.methods = methods
        self.streams = streams
    }
}

/// How one distributed method is called from the bytes of its arguments.
public struct DispatchMethod<A: DistributedActor>: Sendable {
    public typealias InPlace =
        @Sendable (
            _ actor: isolated A, _ arguments: inout CallArguments, _ reply: inout CallReply
        ) throws -> Void
    public typealias Operation = @Sendable (isolated A) async throws -> CallResult
    public typealias Prepare = @Sendable (_ arguments: inout CallArguments) throws -> Operation

    enum Body: Sendable {
        case inPlace(InPlace)
        case suspending(Prepare)
    }

    let name: String
    let arguments: Int
    let generics: Int
    let errorType: (any Error.Type)?
    let body: Body

    /// A synchronous method: it runs in place, on the actor's reactor.
    public static func sync(
        _ name: String, arguments: Int, generics: Int = 0, throwing: (any Error.Type)? = nil, _ body: @escaping InPlace
    ) -> Self {
        Self(name: name, arguments: arguments, generics: generics, errorType: throwing, body: .inPlace(body))
    }

    /// A method that may suspend: its arguments are decoded first, then the operation runs in a task.
    public static func async(
        _ name: String, arguments: Int, generics: Int = 0, throwing: (any Error.Type)? = nil,
        _ prepare: @escaping Prepare
    ) -> Self {
        Self(name: name, arguments: arguments, generics: generics, errorType: throwing, body: .suspending(prepare))
    }
}

/// How one streamed state is reached.
public struct DispatchStream<A: DistributedActor>: Sendable {
    /// `observeState`
    let name: String
    let cell: @Sendable (isolated A) -> any AnyStateCell

    public static func state<Value>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> StateCell<Value>
    ) -> Self {
        Self(name: name) { cell($0) }
    }
}
