internal import Synchronization

/// What a key's work comes to, told once: the first outcome counts, and being dropped is one.
final class KeyOutcome<Told: Sendable>: Sendable {
    typealias Receiver = @Sendable (Told) -> Void

    private let receiver: Mutex<Receiver?>
    private let abandoned: Told

    /// - Parameter abandoned: what is told when nobody tells anything.
    init(orElse abandoned: Told, _ receiver: @escaping Receiver) {
        self.abandoned = abandoned
        self.receiver = Mutex(receiver)
    }

    deinit { tell(abandoned) }

    func tell(_ told: Told) {
        let receiver = receiver.withLock { $0.take() }
        receiver?(told)
    }
}

/// A key dropped its continuation without resuming it.
public struct AbandonedContinuation: Error, Hashable, CustomStringConvertible {
    public var description: String {
        "the key dropped its continuation without an outcome; let its load or save resume it on every path, "
            + "with 'resume(throwing:)' for what its work throws"
    }
}

/// A key had no value to load, and one was required.
public struct MissingValue: Error, CustomStringConvertible {
    /// The key, as it describes itself.
    public let key: String

    public var description: String {
        "\(key) has no value to load; save one first, or begin with one: 'Shared(wrappedValue: …, key)'"
    }
}
