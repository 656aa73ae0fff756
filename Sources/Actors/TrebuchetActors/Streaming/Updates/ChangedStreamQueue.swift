/// The states that have changed on a reactor and not reached all their local subscribers, in the order of the changes. A
/// response checks only the changes since the previous response, not every stream of its connection.
package struct ChangedStreamQueue: Sendable {
    /// The maximum number of entries. A response that needs more checks all streams of its connection.
    static let longest = 1_024

    /// The position of the first entry; positions only increase.
    private var first: UInt64 = 0
    /// Set if entries were dropped since all subscribers were last up to date.
    private var isIncomplete = false
    private var entries: [ObjectIdentifier] = []
    /// Set if the last entry was read.
    private var isLastRead = true
    /// The number of streams and changes that responses have checked so far.
    package var checkCount = 0

    private var end: UInt64 { first + UInt64(entries.count) }

    /// Records that a state has changed, by the identity of its source.
    mutating func recordChange(_ root: ObjectIdentifier) {
        if !isLastRead, entries.last == root { return }
        if entries.count == Self.longest {
            isIncomplete = true
            drop()
        }
        entries.append(root)
        isLastRead = false
    }

    /// Returns the changes since a position, which moves to the end; nil if some were dropped.
    package mutating func changes(since position: inout UInt64) -> ArraySlice<ObjectIdentifier>? {
        let seen = position
        position = end
        isLastRead = true
        if seen < first { return isIncomplete ? nil : entries[...] }
        return entries[Int(seen - first)...]
    }

    /// Removes all entries except `rest`, after all other subscribers are up to date.
    mutating func clear(except rest: some Sequence<ObjectIdentifier>) {
        isIncomplete = false
        drop()
        for root in rest { recordChange(root) }
    }

    private mutating func drop() {
        first = end
        entries.removeAll(keepingCapacity: true)
        isLastRead = true
    }
}
