public import Distributed

/// The newest value of an actor's state, in a model, a view or a program.
///
///     @MainActor @Observable final class TodosModel {
///         @ObservationIgnored @ObservedActor("todos", observe: \TodoList.observeState) var state
///     }
///
/// The value is nil until the first one has come. Reading it is noticed by Observation, also with `@ObservationIgnored`,
/// which only keeps `@Observable` from making the property its own. `$state` is the ``ActorObserver``: the actor to call,
/// and how the observation goes.
///
/// The observation begins when the value or anything of `$state` is first read, or when `$state.connect(_:)` gives it a
/// client, and ends when the last copy of the wrapper is gone. Values are set on the main actor: versions that came while
/// it was busy are skipped, the last one never is. They may be read from anywhere.
///
/// The client is the one that was given here or to `$state.connect(_:)`, else the one of `.trebuchet(_:)` in a SwiftUI
/// view, else `TrebuchetClient.default`. One that is not connected is connected.
@propertyWrapper
public struct ObservedActor<A: DistributedActor, Value: Codable & Sendable>
where A.ActorSystem == TrebuchetActorSystem {
    #if canImport(SwiftUI)
        var installation: ViewInstallation<A, Value>
        private var observer: ActorObserver<A, Value> { installation.observer }
    #else
        private let observer: ActorObserver<A, Value>
    #endif

    /// Observes the actor of this name at the client's server.
    public init(
        _ id: String, observe path: any KeyPath<A, StateObservation<A, Value>> & Sendable,
        client: TrebuchetClient? = nil
    ) {
        self.init(ActorObserver(id, path, client: client))
    }

    /// Observes an actor that is there already, in this process or as a reference, and keeps it.
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

    /// The newest value; nil until the first one has come.
    public var wrappedValue: Value? { observer.value }

    /// The actor, and how its observation goes.
    public var projectedValue: ActorObserver<A, Value> { observer }
}
