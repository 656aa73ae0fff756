internal import Bytes
public import Distributed
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

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
    /// The source of the versions, with the reactor that the actor lives on.
    let source: @Sendable (isolated A, ReactorShard?) -> any AnyStateSource
    /// Set for a state that is kept in the server's store.
    let persistence: StatePersistence<A>?
    /// The values in JSON, the newest for whoever asks.
    let encodedValues: @Sendable (A) -> AsyncStream<Data>
}

extension DispatchStream where A.ActorSystem == TrebuchetActorSystem {
    /// - Parameters:
    ///   - cell: what tells of the property's changes.
    ///   - value: the property.
    public static func state<Value>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value
    ) -> Self {
        state(name, cell, value: value, persistence: nil)
    }

    /// A state that is kept in the server's store under the actor's name and `property`.
    ///
    /// - Parameter load: sets the property to what was kept.
    public static func persisted<Value>(
        _ name: String, property: String, _ cell: @escaping @Sendable (isolated A) -> StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value, load: @escaping @Sendable (isolated A, Value) -> Void
    ) -> Self {
        state(name, cell, value: value, persistence: StatePersistence(property: property, load))
    }

    private static func state<Value>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value, persistence: StatePersistence<A>?
    ) -> Self {
        Self(
            name: name,
            source: { actor, home in
                cell(actor).source(home: home) { [weak actor] in
                    // Asked for in the actor's isolation, as all of a source.
                    actor.map { $0.assumeIsolated { value($0) } }
                }
            },
            persistence: persistence,
            encodedValues: { actor in encodedValues(StateObservation<A, Value>(actor, name)) })
    }

    private static func encodedValues<Value>(_ observation: StateObservation<A, Value>) -> AsyncStream<Data> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                let coder = ValueCoder(version: .v3)
                for await value in await observation() {
                    var buffer = ByteBuffer()
                    guard (try? coder.encode(value, into: &buffer)) != nil else { break }
                    continuation.yield(Data(buffer.bytes))
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
