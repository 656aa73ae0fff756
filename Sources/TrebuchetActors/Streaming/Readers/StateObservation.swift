public import Distributed
public import struct TrebuchetWire.StreamFilter

/// The way to observe one streamed state of an actor, local or remote: `await todos.observeState()`.
///
/// It is a property, so that `\TodoList.observeState` is a key path.
public struct StateObservation<A: DistributedActor, Value>: Sendable
where A.ActorSystem == TrebuchetActorSystem {
    private let actor: A
    /// `observeState`
    public let name: String
    private let delivery: StreamDelivery

    /// - Parameter delivery: that of the property; `.latest` gives the newest values of any.
    public init(_ actor: A, _ name: String, delivery: StreamDelivery = .latest) {
        self.actor = actor
        self.name = name
        self.delivery = delivery
    }
}

extension StateObservation where Value: Codable & Sendable {
    /// Begins to observe. The stream gives the current value first, then what is newer than what its reader has seen.
    ///
    /// It does not throw: the stream ends when the server ends it, and `stream.outcome` says why.
    public func callAsFunction() async -> StateStream<Value> {
        if let local = await LocalObservation<Value>.begin(actor, name) { return StateStream(.local(local)) }
        if case .every(let buffer) = delivery {
            return StateStream(.remote(actor, name, reading: .every(buffer: StreamDelivery.room(for: buffer))))
        }
        return StateStream(.remote(actor, name, kept: KeptStates.make(for: Value.self)))
    }

    /// Begins to observe what a filter lets through; the server evaluates it, so that nothing else is sent.
    ///
    /// The first value comes at once, unless a condition does not hold yet. A filter that makes no sense ends the stream
    /// with `invalidArguments`.
    public func callAsFunction(filter: StreamFilter) async -> StateStream<Value> {
        await self(filter: filter, as: Value.self)
    }

    /// Begins to observe the part of the state that a filter names, as `.path("/players/7")`.
    ///
    /// - Parameter type: that of the part. An optional one gets nil while there is no such part; another one gets nothing.
    public func callAsFunction<Part: Codable & Sendable>(
        filter: StreamFilter, as type: Part.Type = Part.self
    ) async -> StateStream<Part> {
        do {
            if let local = try await LocalStreams.begin(actor, name, through: filter) {
                return StateStream(.encoded(local))
            }
        } catch {
            return StateStream(.failed(error))
        }
        return StateStream(.remote(actor, name, filter: filter))
    }

    /// The form for `for try await`: it throws a `TrebuchetError` when the stream ends other than in order.
    public func throwing() -> ThrowingStateStream<A, Value> { ThrowingStateStream(observation: self) }
}

extension DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// Observes a state of an actor of which only a `@Resolvable` protocol is known:
    ///
    ///     extension TodoListing {
    ///         nonisolated var observeState: StateObservation<Self, ListState> { observation("observeState") }
    ///     }
    ///
    /// - Parameter delivery: that of the property; with `.latest` a slow reader skips versions whatever the property says.
    public nonisolated func observation<Value: Codable & Sendable>(
        _ name: String, delivery: StreamDelivery = .latest
    ) -> StateObservation<Self, Value> {
        StateObservation(self, name, delivery: delivery)
    }
}
