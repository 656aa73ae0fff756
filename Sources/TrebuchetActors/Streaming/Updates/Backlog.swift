internal import Bytes

/// The last updates of a source that leaves nothing out, for those who are behind: numbered without gaps.
struct Backlog: Sendable {
    /// Bytes of updates that are kept, whatever their number; the newest one always is.
    static let mostBytes = 16 << 20

    let limit: Int
    private(set) var position: UInt64
    private var updates: [StateUpdate] = []
    /// How many at the front of `updates` are forgotten already: taken out in one go now and then.
    private var forgotten = 0
    private var bytes = 0

    /// - Parameter position: the number of the last update before those that come.
    init(limit: Int, position: UInt64) {
        self.limit = max(1, limit)
        self.position = position
    }

    var count: Int { updates.count - forgotten }

    mutating func append(_ update: StateUpdate) {
        if update.sequence != position + 1 { removeAll() }
        position = update.sequence
        updates.append(update)
        bytes += update.storedBytes
        while count > limit || bytes > Self.mostBytes && count > 1 {
            bytes -= updates[forgotten].storedBytes
            forgotten += 1
        }
        if forgotten > max(32, limit) {
            updates.removeFirst(forgotten)
            forgotten = 0
        }
    }

    mutating func removeAll() {
        updates = []
        forgotten = 0
        bytes = 0
    }

    /// What comes after an update; nil when some of it is forgotten.
    func updates(after sequence: UInt64) -> ArraySlice<StateUpdate>? {
        guard sequence < position else { return [] }
        let missing = position - sequence
        guard missing <= UInt64(count) else { return nil }
        return updates[(updates.count - Int(missing))...]
    }
}

extension StateUpdate {
    /// What it holds, in bytes.
    var storedBytes: Int {
        (current?.count ?? 0) + (patch?.suffix.count ?? 0)
    }
}
