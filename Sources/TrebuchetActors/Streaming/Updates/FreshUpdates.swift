/// The updates of a turn, oldest first, until all subscribers have been written to.
///
/// Bounded by what two turns encode at once: beyond it only the newest is there, since who is that far behind skips the
/// others. Of those that are differences no whole value is kept.
struct FreshUpdates {
    private static let mostBytes = 4 * EagerBytes.perTurn
    private static let mostUpdates = 2 * (EagerBytes.perTurn / EagerBytes.leastPerUpdate + 1)

    private(set) var updates: [StateUpdate] = []
    private var bytes = 0

    mutating func append(_ update: StateUpdate) {
        updates.append(update)
        bytes += update.byteCount
        guard updates.count > Self.mostUpdates || bytes > Self.mostBytes else { return }
        updates = [update]
        bytes = update.byteCount
    }

    /// Forgets those up to a version that nobody needs any more.
    mutating func removeAll(upTo sequence: UInt64) {
        let count = updates.firstIndex { $0.sequence > sequence } ?? updates.count
        for update in updates[..<count] { bytes -= update.byteCount }
        updates.removeFirst(count)
    }

    mutating func removeAll() {
        // The room of one is kept; that of a burst is not.
        updates.removeAll(keepingCapacity: updates.count <= 8)
        bytes = 0
    }
}

/// How much of what changes in a turn may be encoded at once.
///
/// States that change several times in a turn reach their subscribers version by version while all of them together stay below
/// `perTurn`; beyond it, versions of the same turn are skipped.
enum EagerBytes {
    static let perTurn = 64 << 10
    /// What an update counts at least, so that a turn holds no more than 32 of them.
    static let leastPerUpdate = 2 << 10
}
