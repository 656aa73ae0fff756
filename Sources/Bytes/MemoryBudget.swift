internal import Synchronization

/// The bytes that a server holds for its peers, all together: input that is not whole, output that is not taken, calls that
/// wait, answers and versions that are kept. At its limit new work is refused; what is there goes on.
///
/// Small and short-lived memory is not counted: each part says in its own limits how much that may be.
package final class MemoryBudget: Sendable {
    package let limit: Int
    private let used = Atomic<Int>(0)

    package init(limit: Int) { self.limit = max(0, limit) }

    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// Whether new work is to be refused.
    package var isExhausted: Bool { usedBytes >= limit }

    /// Counts bytes for new work; false, and nothing is counted, when there is no room for them.
    package func take(_ bytes: Int) -> Bool {
        if used.add(bytes, ordering: .relaxed).newValue <= limit { return true }
        release(bytes)
        return false
    }

    /// Counts bytes that are held already, whether there is room or not.
    package func hold(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }

    package func release(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}
