/// The updates of a turn, oldest first, until all subscribers have been served.
///
/// Bounded by the amount that two turns encode. Beyond it only the newest update remains, because a subscriber that far behind
/// skips the others. Whole values are not kept for deltas.
struct TurnUpdates {
    private static let maximumBytes = 4 * EncodeBudget.perTurn
    private static let maximumUpdates = 2 * (EncodeBudget.perTurn / EncodeBudget.minimumPerUpdate + 1)

    private(set) var updates: [StateUpdate] = []
    private var bytes = 0

    mutating func append(_ update: StateUpdate) {
        updates.append(update)
        bytes += update.byteCount
        guard updates.count > Self.maximumUpdates || bytes > Self.maximumBytes else { return }
        updates = [update]
        bytes = update.byteCount
    }

    /// Removes the updates up to a version.
    mutating func removeAll(upTo sequence: UInt64) {
        let count = updates.firstIndex { $0.sequence > sequence } ?? updates.count
        for update in updates[..<count] { bytes -= update.byteCount }
        updates.removeFirst(count)
    }

    mutating func removeAll() {
        // The capacity for a few updates is kept; that of a burst is not.
        updates.removeAll(keepingCapacity: updates.count <= 8)
        bytes = 0
    }
}

/// The budget for encoding in a turn.
///
/// States that change several times in a turn are sent version by version while their total size is below `perTurn`; beyond it,
/// versions of the same turn are skipped.
enum EncodeBudget {
    static let perTurn = 64 << 10
    /// The minimum cost of an update, so that a turn has at most 32 of them.
    static let minimumPerUpdate = 2 << 10
}
