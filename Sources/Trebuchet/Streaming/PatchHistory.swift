internal import Bytes

/// The last updates of a state that were differences, each from the one before: who has one of their bases needs no more
/// than what follows it.
///
/// Bounded: at most 32 of them, and together smaller than the value itself.
struct PatchHistory: Sendable {
    private static let longest = 32

    private var updates: [StateUpdate] = []
    private var bytes = 0

    /// Notes the newest update.
    mutating func remember(_ update: StateUpdate) {
        guard let patch = update.patch else { return forget() }
        if updates.last?.sequence != patch.base { forget() }
        updates.append(update)
        bytes += patch.suffix.count
        var surplus = 0
        while updates.count - surplus > Self.longest || bytes > update.wholeByteCount {
            bytes -= updates[surplus].patch?.suffix.count ?? 0
            surplus += 1
        }
        updates.removeFirst(surplus)
    }

    private mutating func forget() {
        updates.removeAll(keepingCapacity: true)
        bytes = 0
    }

    /// What leads from a version to the newest one; nil when that is out of reach.
    func updates(since sequence: UInt64) -> ArraySlice<StateUpdate>? {
        // Nearly everybody is one behind.
        if let last = updates.last, last.patch?.base == sequence { return updates.suffix(1) }
        return updates.firstIndex { $0.patch?.base == sequence }.map { updates[$0...] }
    }
}
