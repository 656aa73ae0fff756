public import Distributed
public import struct TrebuchetWire.StreamFilter

/// Observes one streamed state of an actor, local or remote: `await todos.observeState()`.
///
/// It is a property, so that `\TodoList.observeState` is a key path.
public struct StateObservation<A: DistributedActor, Value>: Sendable
where A.ActorSystem == TrebuchetActorSystem {
    private let actor: A
    /// The name on the wire, such as `observeState`.
    public let name: String
    private let delivery: StreamDelivery

    /// Creates the value of an actor's `observeState`.
    ///
    /// - Parameter delivery: the delivery of the property; `.latest` delivers the newest values of any property.
    public init(_ actor: A, _ name: String, delivery: StreamDelivery = .latest) {
        self.actor = actor
        self.name = name
        self.delivery = delivery
    }
}

extension StateObservation where Value: Codable & Sendable {
    /// Starts to observe. The stream delivers the current value first, then values newer than the last one read.
    ///
    /// The method does not throw: the stream ends if the server ends it, and `stream.outcome` is the reason.
    public func callAsFunction() async -> StateStream<Value> {
        if let local = await LocalObservation<Value>.start(actor, name) { return StateStream(.local(local)) }
        if case .every(let buffer) = delivery {
            return StateStream(.remote(actor, name, reading: .every(buffer: StreamDelivery.room(for: buffer))))
        }
        return StateStream(.remote(actor, name, incremental: IncrementalStateFactory.make(for: Value.self)))
    }

    /// Starts to observe through a filter. The server evaluates it and sends only accepted versions.
    ///
    /// The first value is delivered immediately, unless a condition does not hold yet. An invalid filter ends the stream with
    /// `invalidArguments`.
    public func callAsFunction(filter: StreamFilter) async -> StateStream<Value> {
        await self(filter: filter, as: Value.self)
    }

    /// Starts to observe the part of the state that a filter names, such as `.path("/players/7")`.
    ///
    /// - Parameter type: the type of the part. While the part does not exist, an optional type receives nil, and another type
    ///   receives nothing.
    public func callAsFunction<Part: Codable & Sendable>(
        filter: StreamFilter, as type: Part.Type = Part.self
    ) async -> StateStream<Part> {
        do {
            if let local = try await LocalStreams.startFiltered(actor, name, through: filter) {
                return StateStream(.encoded(local))
            }
        } catch {
            return StateStream(.failed(error))
        }
        return StateStream(.remote(actor, name, filter: filter))
    }

    /// Returns the form for `for try await`: it throws a `TrebuchetError` if the stream does not end regularly.
    public func throwing() -> ThrowingStateStream<A, Value> { ThrowingStateStream(observation: self) }
}

extension DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// Observes a state of an actor of which only a `@Resolvable` protocol is known:
    ///
    ///     extension TodoListing {
    ///         nonisolated var observeState: StateObservation<Self, ListState> { observation("observeState") }
    ///     }
    ///
    /// - Parameter delivery: the delivery of the property; with `.latest` a slow reader skips versions regardless of the
    ///   property.
    public nonisolated func observation<Value: Codable & Sendable>(
        _ name: String, delivery: StreamDelivery = .latest
    ) -> StateObservation<Self, Value> {
        StateObservation(self, name, delivery: delivery)
    }
}
