internal import Synchronization

/// The bytes that a server holds for all its peers: partial input, unsent output, waiting calls, recorded responses and stored
/// versions.
///
/// At the limit new work is refused and existing work continues. Small, short-lived memory is not counted; each component states
/// its bound in its own limits.
package final class MemoryBudget: Sendable {
    package let limit: Int
    private let used = Atomic<Int>(0)

    package init(limit: Int) { self.limit = max(0, limit) }

    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// Returns true if the limit is reached, so that new work must be rejected.
    package var isExhausted: Bool { usedBytes >= limit }

    /// Reserves bytes for new work.
    ///
    /// - Returns: false, with nothing counted, if the limit would be exceeded.
    package func reserve(_ bytes: Int) -> Bool {
        if used.add(bytes, ordering: .relaxed).newValue <= limit { return true }
        release(bytes)
        return false
    }

    /// Counts bytes that are already held, regardless of the limit.
    package func adjustUsage(by bytes: Int) { used.add(bytes, ordering: .relaxed) }

    package func release(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}
