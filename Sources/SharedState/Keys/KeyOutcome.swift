internal import Synchronization

/// What a key's work comes to, told once: the first outcome counts, and being dropped is one.
final class KeyOutcome<Success: Sendable>: Sendable {
    typealias Receiver = @Sendable (Result<Success, any Error>) -> Void

    private let receiver: Mutex<Receiver?>

    init(_ receiver: @escaping Receiver) { self.receiver = Mutex(receiver) }

    deinit { tell(.failure(AbandonedContinuation())) }

    func tell(_ result: Result<Success, any Error>) {
        let receiver = receiver.withLock { $0.take() }
        receiver?(result)
    }
}

/// A key dropped its continuation without resuming it.
public struct AbandonedContinuation: Error, Hashable, CustomStringConvertible {
    public var description: String {
        "the key dropped its continuation without an outcome; let its load or save resume it on every path"
    }
}

/// A key had no value to load, and one was required.
public struct MissingValue: Error, CustomStringConvertible {
    /// The key, as it describes itself.
    public let key: String

    public var description: String { "\(key) has no value to load, and 'init(require:)' takes no other" }
}
