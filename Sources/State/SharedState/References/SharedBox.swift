internal import Observation
internal import Synchronization

/// The common reference of all copies of a wrapper, so that its replacement in one copy affects all.
///
/// Generic over the kind of reference: `any MutableReference<Value>` or `any SharedReference<Value>`.
final class SharedBox<Reference: Sendable>: Sendable {
    private let contents: Mutex<Reference>
    private let registrar = ObservationRegistrar()

    init(_ reference: Reference) { contents = Mutex(reference) }

    /// The reference. Observation tracks its reads.
    var reference: Reference {
        get {
            registrar.access(SharedObservation(), keyPath: \.reference)
            return contents.withLock { $0 }
        }
        set {
            // The old one is released outside the lock, and observers are notified after the change, as with values.
            let old = contents.withLock { contents in
                defer { contents = newValue }
                return contents
            }
            registrar.withMutation(of: SharedObservation(), keyPath: \.reference) {}
            withExtendedLifetime(old) {}
        }
    }
}

/// The observable properties of a shared value.
///
/// Separate from the objects that have them, whose types are generic: a key path into a generic type is created at
/// each use, which took most of the time of a read.
struct SharedObservation: Observable {
    /// The value.
    var value: Void { () }
    /// The loading state, and the errors.
    var progress: Void { () }
    /// The reference of a wrapper.
    var reference: Void { () }
}
