internal import Synchronization

/// From where on somebody is about to observe a stream's events: those that come are kept for as long as this is there, so that there is no
/// gap between being told the number and being sent to.
package final class StreamPosition: Sendable {
    /// Of the last event before those that are kept.
    package let number: UInt64
    private let expected: Expected

    init(_ number: UInt64, _ expected: Expected) {
        self.number = number
        self.expected = expected
        expected.count.add(1, ordering: .relaxed)
    }

    deinit { expected.count.subtract(1, ordering: .relaxed) }

    /// How many there are of one stream. From anywhere.
    final class Expected: Sendable {
        fileprivate let count = Atomic<Int>(0)

        var isAny: Bool { count.load(ordering: .relaxed) > 0 }
    }
}
