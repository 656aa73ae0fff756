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

    mutating func removeAll() {
        // The room of one is kept; that of a burst is not.
        updates.removeAll(keepingCapacity: updates.count <= 8)
        bytes = 0
    }
}
