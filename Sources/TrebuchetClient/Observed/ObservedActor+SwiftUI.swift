#if canImport(SwiftUI)
    internal import Distributed
    public import SwiftUI

    /// In a view, the observation lasts as long as the view, and its client is the one of `.trebuchet(_:)` when it was
    /// given none.
    extension ObservedActor: DynamicProperty {}

    extension View {
        /// Makes each ``ObservedActor`` of this view and those inside it use a client.
        public func trebuchet(_ client: TrebuchetClient?) -> some View { environment(\.trebuchetClient, client) }
    }

    extension EnvironmentValues {
        /// The client of `.trebuchet(_:)`; nil without one.
        public var trebuchetClient: TrebuchetClient? {
            get { self[TrebuchetClientKey.self] }
            set { self[TrebuchetClientKey.self] = newValue }
        }
    }

    private struct TrebuchetClientKey: EnvironmentKey {
        static var defaultValue: TrebuchetClient? { nil }
    }

    /// Keeps the observer of a view, whose wrapper is made anew with each description of it.
    struct ViewInstallation<A: DistributedActor, Value: Codable & Sendable>: DynamicProperty
    where A.ActorSystem == TrebuchetActorSystem {
        private final class Kept {
            var observer: ActorObserver<A, Value>

            init(_ observer: ActorObserver<A, Value>) { self.observer = observer }
        }

        private let made: ActorObserver<A, Value>
        @State private var kept: Kept
        @Environment(\.trebuchetClient) private var client
        /// Outside of views, where nobody calls `update()`, the one that was made.
        private(set) var observer: ActorObserver<A, Value>

        init(_ made: ActorObserver<A, Value>) {
            self.made = made
            observer = made
            _kept = State(initialValue: Kept(made))
        }

        mutating func update() {
            // A view may come to show another actor.
            if !kept.observer.observesTheSame(as: made) { kept.observer = made }
            observer = kept.observer
            if let client { observer.use(client, .environment) }
        }
    }
#endif
