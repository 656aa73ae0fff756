internal import Synchronization

/// The bytes that a server holds for all its peers: partial input, unsent output, waiting calls, recorded responses and stored
/// versions.
///
/// At the limit new work is refused and existing work continues. Small, short-lived memory is not counted; each component states
/// its bound in its own limits.
package final class MemoryBudget: Sendable {
    package let limit: Int
    private let used = Atomic<Int>(0)
    /// The budget of a network of hosts, in which the bytes also count.
    private let network: MemoryBudget?

    package init(limit: Int, within network: MemoryBudget? = nil) {
        self.limit = max(0, limit)
        self.network = network
    }

    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// Returns true if the limit is reached, so that new work must be rejected.
    package var isExhausted: Bool { usedBytes >= limit || network?.isExhausted == true }

    /// Returns whether so many more bytes are within the limit.
    package func hasRoom(for bytes: Int) -> Bool {
        usedBytes + bytes <= limit && network?.hasRoom(for: bytes) != false
    }

    /// Reserves bytes for new work.
    ///
    /// - Returns: false, with nothing counted, if the limit would be exceeded.
    package func reserve(_ bytes: Int) -> Bool {
        guard network?.reserve(bytes) != false else { return false }
        if used.add(bytes, ordering: .relaxed).newValue <= limit { return true }
        release(bytes)
        return false
    }

    /// Counts bytes that are already held, regardless of the limit.
    package func adjustUsage(by bytes: Int) {
        used.add(bytes, ordering: .relaxed)
        network?.adjustUsage(by: bytes)
    }

    package func release(_ bytes: Int) { adjustUsage(by: -bytes) }
}
