/// Which states have changed on a reactor and are not known to all who observe them there, in the order of the changes: an
/// answer looks at what came since the one before it, and not at every stream of its connection.
package struct ChangeLog: Sendable {
    /// Entries at once; who would need more looks at all that it has.
    static let longest = 1_024

    /// The position of the first entry; positions only grow.
    private var first: UInt64 = 0
    /// Whether entries were left out since everybody was told last.
    private var isIncomplete = false
    private var entries: [ObjectIdentifier] = []
    /// Whether somebody has looked at the last entry.
    private var isLastSeen = true
    /// How many streams and changes answers have looked at so far.
    package var looks = 0

    private var end: UInt64 { first + UInt64(entries.count) }

    /// Notes that a state has changed: the identity of its source.
    mutating func note(_ root: ObjectIdentifier) {
        if !isLastSeen, entries.last == root { return }
        if entries.count == Self.longest {
            isIncomplete = true
            drop()
        }
        entries.append(root)
        isLastSeen = false
    }

    /// What has changed since a position, which moves to the end; nil when some of it was left out.
    package mutating func changes(since position: inout UInt64) -> ArraySlice<ObjectIdentifier>? {
        let seen = position
        position = end
        isLastSeen = true
        if seen < first { return isIncomplete ? nil : entries[...] }
        return entries[Int(seen - first)...]
    }

    /// Everybody was told of everything, but for those who wait for these.
    mutating func clear(butFor rest: some Sequence<ObjectIdentifier>) {
        isIncomplete = false
        drop()
        for root in rest { note(root) }
    }

    private mutating func drop() {
        first = end
        entries.removeAll(keepingCapacity: true)
        isLastSeen = true
    }
}
