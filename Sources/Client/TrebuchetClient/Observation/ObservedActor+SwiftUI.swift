#if canImport(SwiftUI)
    internal import Distributed
    public import SwiftUI

    /// In a view, the observation lasts as long as the view. Its client is that of `.trebuchet(_:)` unless another was given.
    extension ObservedActor: DynamicProperty {}

    extension View {
        /// Sets the client of each ``ObservedActor`` in this view and its subviews.
        public func trebuchet(_ client: TrebuchetClient?) -> some View { environment(\.trebuchetClient, client) }
    }

    extension EnvironmentValues {
        /// The client of `.trebuchet(_:)`, or nil.
        public var trebuchetClient: TrebuchetClient? {
            get { self[TrebuchetClientKey.self] }
            set { self[TrebuchetClientKey.self] = newValue }
        }
    }

    /// The environment key of the client.
    private struct TrebuchetClientKey: EnvironmentKey {
        static var defaultValue: TrebuchetClient? { nil }
    }

    /// The storage of a view's observer, because SwiftUI creates the wrapper again with each view value.
    struct ViewInstallation<A: DistributedActor, Value: Codable & Sendable>: DynamicProperty
    where A.ActorSystem == TrebuchetActorSystem {
        /// A reference to the observer, kept by SwiftUI.
        private final class Storage {
            var observer: ActorObserver<A, Value>

            init(_ observer: ActorObserver<A, Value>) { self.observer = observer }
        }

        private let created: ActorObserver<A, Value>
        @State private var storage: Storage
        @Environment(\.trebuchetClient) private var client
        /// The observer; outside of views, where `update()` is not called, the initial one.
        private(set) var observer: ActorObserver<A, Value>

        init(_ created: ActorObserver<A, Value>) {
            self.created = created
            observer = created
            _storage = State(initialValue: Storage(created))
        }

        mutating func update() {
            // The view may display another actor now.
            if !storage.observer.observesTheSame(as: created) { storage.observer = created }
            observer = storage.observer
            if let client { observer.setClient(client, .environment) }
        }
    }
#endif
