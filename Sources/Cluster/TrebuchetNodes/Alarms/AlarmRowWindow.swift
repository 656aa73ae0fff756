internal import Platform
internal import Trebuchet

/// The earliest alarm rows of one slot that a node has in memory: all rows of the slot's table behind `start`, up to `end`. However
/// many rows the table has, at most `maximumRows` are in memory. Pure.
struct AlarmRowWindow {
    /// The number of rows that are read at a time.
    static let pageSize = 32
    /// The maximum number of rows in memory.
    static let maximumRows = 2 * pageSize

    /// The next row behind a position.
    enum Next: Equatable {
        /// The row with this index.
        case row(Int)
        /// There is none.
        case none
        /// The table has to be read behind `end` first.
        case unknown
    }

    /// The rows in the order of their names.
    private(set) var rows: [AlarmRow] = []
    private var start = ""
    private(set) var end = ""
    /// Indicates whether the table has no rows behind `end`.
    private(set) var isComplete = false
    /// The changes since the running read began, which it may lack.
    private var changes: (inserted: [AlarmRow], removed: Set<ByteText>)?

    /// Moves the window so that it covers the position if necessary, and returns the first row behind it.
    mutating func seek(after position: String) -> Next {
        let isBefore = position.precedesInBytes(start)
        if isBefore || !isComplete && end.precedesInBytes(position) {
            (rows, start, end, isComplete) = ([], position, position, false)
            // A running read belongs to the earlier position.
            changes = nil
        }
        let index = firstIndex(after: position)
        if index < rows.count { return .row(index) }
        return isComplete ? .none : .unknown
    }

    /// Returns the index of the first row whose name follows a name.
    func firstIndex(after name: String) -> Int {
        var (low, high) = (0, rows.count)
        while low < high {
            let middle = (low + high) / 2
            if name.precedesInBytes(rows[middle].name) { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Begins a read of the rows behind `end`.
    mutating func beginRead() { changes = ([], []) }

    /// Ends a read.
    ///
    /// - Parameters:
    ///   - page: The rows that were read.
    ///   - next: The name up to which the table was read; nil if no rows follow.
    /// - Returns: false if the window has moved since the read began.
    @discardableResult
    mutating func didRead(_ page: [AlarmRow], next: String?) -> Bool {
        guard let changes else { return false }
        self.changes = nil
        rows += page.filter { !changes.removed.contains(ByteText($0.name)) }
        end = next ?? page.last?.name ?? end
        isComplete = next == nil
        for row in changes.inserted { insert(row) }
        let excess = rows.count - Self.maximumRows
        if excess > 0 {
            // Earlier rows were passed over; they are read again when the position goes back.
            start = rows[excess - 1].name
            rows.removeFirst(excess)
        }
        return true
    }

    /// Ends a read that failed.
    mutating func didFailToRead() { changes = nil }

    /// Adds a row that was written to the table.
    mutating func insert(_ row: AlarmRow) {
        changes?.inserted.append(row)
        changes?.removed.remove(ByteText(row.name))
        guard start.precedesInBytes(row.name), isComplete || !end.precedesInBytes(row.name) else { return }
        let index = firstIndex(after: row.name)
        guard index == 0 || !rows[index - 1].name.isSameBytes(as: row.name) else { return }
        rows.insert(row, at: index)
        guard rows.count > Self.maximumRows else { return }
        rows.removeLast(rows.count - Self.pageSize)
        // A running read begins behind the former end.
        (end, isComplete, changes) = (rows[rows.count - 1].name, false, nil)
    }

    /// Removes a row.
    mutating func remove(_ name: String) {
        if changes != nil {
            changes?.removed.insert(ByteText(name))
            changes?.inserted.removeAll { $0.name.isSameBytes(as: name) }
        }
        let index = firstIndex(after: name) - 1
        if index >= 0, rows[index].name.isSameBytes(as: name) { rows.remove(at: index) }
    }

    /// Returns the rows of an actor with a time.
    func rows(_ time: Int64, of actor: String) -> [AlarmRow] {
        rows.filter { $0.time == time && $0.actor.isSameBytes(as: actor) }
    }
}
