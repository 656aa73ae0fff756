internal import Observation
internal import Synchronization

/// What all copies of a wrapper refer to, so that a copy finds what another one was made to refer to.
///
/// Generic over the kind of reference: `any MutableReference<Value>` or `any SharedReference<Value>`.
final class SharedBox<Reference: Sendable>: Sendable {
    private let contents: Mutex<Reference>
    private let registrar = ObservationRegistrar()

    init(_ reference: Reference) { contents = Mutex(reference) }

    /// Reading it is noticed by Observation.
    var reference: Reference {
        get {
            registrar.access(Observed(), keyPath: \.reference)
            return contents.withLock { $0 }
        }
        set {
            // The old one is released out of the lock, and observers are told after the change, as with values.
            let old = contents.withLock { contents in
                defer { contents = newValue }
                return contents
            }
            registrar.withMutation(of: Observed(), keyPath: \.reference) {}
            withExtendedLifetime(old) {}
        }
    }
}

/// What Observation sees of a shared value: its parts by their names.
///
/// Not the objects that have them, whose types are generic: a key path into a generic type is made anew each time, and that took
/// most of the time of a reading.
struct Observed: Observable {
    /// The value.
    var value: Void { () }
    /// Whether it is loading, and the errors.
    var progress: Void { () }
    /// What a wrapper refers to.
    var reference: Void { () }
}
