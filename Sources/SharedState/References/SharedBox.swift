internal import Observation
internal import Synchronization

/// What all copies of a wrapper refer to, so that a copy finds what another one was made to refer to.
///
/// Generic over the kind of reference: `any MutableReference<Value>` or `any SharedReference<Value>`.
final class SharedBox<Reference: Sendable>: Sendable, Observable {
    private let contents: Mutex<Reference>
    private let registrar = ObservationRegistrar()

    init(_ reference: Reference) { contents = Mutex(reference) }

    /// Reading it is noticed by Observation.
    var reference: Reference {
        get {
            registrar.access(self, keyPath: \.place)
            return contents.withLock { $0 }
        }
        set {
            // The old one is released out of the lock, and observers are told after the change, as with values.
            let old = contents.withLock { contents in
                defer { contents = newValue }
                return contents
            }
            registrar.withMutation(of: self, keyPath: \.place) {}
            withExtendedLifetime(old) {}
        }
    }

    /// Stands for the reference in the eyes of Observation.
    private var place: Void { () }
}
