public import Distributed

/// A property wrapper with the newest value of an actor's state, for a model, a view or a program.
///
///     @MainActor @Observable final class TodosModel {
///         @ObservationIgnored @ObservedActor("todos", observe: \TodoList.observeState) var state
///     }
///
/// The value is nil until the first one arrives. Reads are tracked by Observation, even with `@ObservationIgnored`, which only
/// prevents `@Observable` from replacing the property. `$state` is the ``ActorObserver``, with the actor and the state of the
/// observation.
///
/// The observation starts when the value or a property of `$state` is first read, or when `$state.connect(_:)` sets a client. It
/// ends when the last copy of the wrapper is released. Values are set on the main actor: versions that arrive while it is busy
/// are skipped, except for the last one. They can be read from any thread.
///
/// The client is the one given here or to `$state.connect(_:)`, otherwise the one of `.trebuchet(_:)` in a SwiftUI view,
/// otherwise `TrebuchetClient.default`. It is connected if necessary.
@propertyWrapper
public struct ObservedActor<A: DistributedActor, Value: Codable & Sendable>
where A.ActorSystem == TrebuchetActorSystem {
    #if canImport(SwiftUI)
        var installation: ViewInstallation<A, Value>
        private var observer: ActorObserver<A, Value> { installation.observer }
    #else
        private let observer: ActorObserver<A, Value>
    #endif

    /// Observes the actor with this name at the client's server.
    public init(
        _ id: String, observe path: any KeyPath<A, StateObservation<A, Value>> & Sendable,
        client: TrebuchetClient? = nil
    ) {
        self.init(ActorObserver(id, path, client: client))
    }

    /// Observes an existing actor, in this process or a reference, and retains it.
    public init(_ actor: A, observe path: any KeyPath<A, StateObservation<A, Value>> & Sendable) {
        self.init(ActorObserver(actor, path))
    }

    private init(_ observer: ActorObserver<A, Value>) {
        #if canImport(SwiftUI)
            installation = ViewInstallation(observer)
        #else
            self.observer = observer
        #endif
    }

    /// The newest value; nil until the first one arrives.
    public var wrappedValue: Value? { observer.value }

    /// The actor and the state of its observation.
    public var projectedValue: ActorObserver<A, Value> { observer }
}
