internal import Synchronization

/// The position at which a client is about to observe a stream's events. Later events are retained while this object exists, so
/// that none is lost between the response with the number and the subscription.
package final class StreamPosition: Sendable {
    /// The number of the last event before those that are retained.
    package let number: UInt64
    private let expected: Expected

    init(_ number: UInt64, _ expected: Expected) {
        self.number = number
        self.expected = expected
        expected.count.add(1, ordering: .relaxed)
    }

    deinit { expected.count.subtract(1, ordering: .relaxed) }

    /// The number of positions of one stream. Accessed on any thread.
    final class Expected: Sendable {
        fileprivate let count = Atomic<Int>(0)

        var isAny: Bool { count.load(ordering: .relaxed) > 0 }
    }
}
