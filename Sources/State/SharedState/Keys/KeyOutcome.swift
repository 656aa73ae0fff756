internal import Synchronization

/// The outcome of a key's work, reported once: the first outcome counts, and release without one is an outcome too.
final class KeyOutcome<Outcome: Sendable>: Sendable {
    typealias Receiver = @Sendable (Outcome) -> Void

    private let receiver: Mutex<Receiver?>
    private let fallback: Outcome

    /// Creates an outcome.
    ///
    /// - Parameter fallback: the result that is reported if there is no other.
    init(orElse fallback: Outcome, _ receiver: @escaping Receiver) {
        self.fallback = fallback
        self.receiver = Mutex(receiver)
    }

    deinit { report(fallback) }

    func report(_ outcome: Outcome) {
        let receiver = receiver.withLock { $0.take() }
        receiver?(outcome)
    }
}

/// The error for a key that released its continuation without resuming it.
public struct AbandonedContinuation: Error, Hashable, CustomStringConvertible {
    public var description: String {
        "the key released its continuation without a result; load or save must resume it on every path, "
            + "with 'resume(throwing:)' for errors"
    }
}

/// The error for a key without a value to load, when one was required.
public struct MissingValue: Error, CustomStringConvertible {
    /// The description of the key.
    public let key: String

    public var description: String {
        "\(key) has no stored value; save one first, or pass an initial value: 'Shared(wrappedValue: …, key)'"
    }
}
