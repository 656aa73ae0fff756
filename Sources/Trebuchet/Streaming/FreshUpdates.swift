/// The updates of a turn, oldest first, until all subscribers have been written to.
///
/// Bounded: whatever their number, the newest is there, and the oldest are left out beyond what two turns may encode at
/// once. Of those that are differences no whole value is kept.
struct FreshUpdates {
    private static let mostBytes = 4 * ReactorShard.eagerBytesPerTurn
    private static let mostUpdates = mostBytes / ReactorShard.leastEagerBytes

    private(set) var updates: [StateUpdate] = []
    private var bytes = 0

    mutating func append(_ update: StateUpdate) {
        updates.append(update)
        bytes += update.byteCount
        var surplus = 0
        while updates.count - surplus > 1, updates.count - surplus > Self.mostUpdates || bytes > Self.mostBytes {
            bytes -= updates[surplus].byteCount
            surplus += 1
        }
        if surplus > 0 { updates.removeFirst(surplus) }
    }

    mutating func removeAll() {
        // The room of one is kept; that of a burst is not.
        updates.removeAll(keepingCapacity: updates.count <= 8)
        bytes = 0
    }
}
