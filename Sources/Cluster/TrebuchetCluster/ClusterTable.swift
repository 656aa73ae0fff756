internal import Platform

/// Named values of one purpose that all nodes read and change. All values of a table are in the slot of its name, so
/// that one step can change several.
public struct ClusterTable: Hashable, Sendable, CustomStringConvertible {
    /// The name: any text, up to `ClusterEngineLimits.nameBytes`. Two names are equal if their bytes are.
    public let id: String
    /// The slot of the name.
    public let slot: ClusterSlot

    /// Creates the table of a name.
    public init(_ id: String) {
        self.id = id
        slot = ClusterSlot(of: id)
    }

    public var description: String { id }

    public static func == (left: Self, right: Self) -> Bool { left.id.isSameBytes(as: right.id) }

    public func hash(into hasher: inout Hasher) { id.hashBytes(into: &hasher) }
}

/// A value of a table.
public struct TableValue: Hashable, Sendable {
    /// The content of the value.
    public let bytes: [UInt8]
    /// The number of the change that wrote the value, at least 1. It is unique in the table over time.
    public let version: UInt64

    /// Creates a value, for custom implementations.
    public init(_ bytes: [UInt8], version: UInt64) {
        self.bytes = bytes
        self.version = version
    }
}

/// A value with its name.
public struct TableRow: Hashable, Sendable {
    /// The name: any non-empty text, up to `ClusterEngineLimits.nameBytes`.
    public let name: String
    /// The value.
    public let value: TableValue

    /// Creates a row, for custom implementations.
    public init(_ name: String, _ value: TableValue) {
        self.name = name
        self.value = value
    }
}

/// A page of a table's values, in the byte order of their names.
public struct TablePage: Hashable, Sendable {
    /// The rows in order.
    public let rows: [TableRow]
    /// The argument `after` for the next page; nil when there is none.
    public let next: String?

    /// Creates a page, for custom implementations.
    public init(_ rows: [TableRow], next: String?) {
        self.rows = rows
        self.next = next
    }
}

/// An atomic change of a table.
public struct TableChange: Hashable, Sendable {
    /// The operation on a value.
    public enum Operation: Hashable, Sendable {
        /// Sets the value.
        case put([UInt8])
        /// Sets the value until it expires, this duration from now: up to a day, by the clock of the coordination
        /// store.
        case putExpiring([UInt8], lifetime: Duration)
        /// Adds to a decimal number. A missing or non-numeric value counts as 0.
        case increment(Int64)
        /// Deletes the value.
        case delete
    }

    /// One write.
    public struct Write: Hashable, Sendable {
        /// The name, up to `ClusterEngineLimits.nameBytes`.
        public let name: String
        /// The operation.
        public let operation: Operation

        /// Creates a write.
        public init(_ name: String, _ operation: Operation) {
            self.name = name
            self.operation = operation
        }
    }

    /// A version that was read before, and must be unchanged.
    public struct Expectation: Hashable, Sendable {
        /// The name of the value.
        public let name: String
        /// The version of the value; 0 if it was missing.
        public let version: UInt64

        /// Creates an expectation.
        public init(_ name: String, version: UInt64) {
            self.name = name
            self.version = version
        }
    }

    /// The versions that must be unchanged.
    public var preconditions: [Expectation]
    /// The writes in order. The last of several for one name counts.
    public var writes: [Write]
    /// The notice for readers of the change feed; nil for none.
    public var notice: [UInt8]?
    /// The incarnation of the table, from its change feed, if the change requires it. In another incarnation it throws
    /// `dataLoss`.
    public var tableIncarnation: String?

    /// Creates a change of up to 1,000 expectations and writes each.
    public init(
        _ writes: [Write], preconditions: [Expectation] = [], notice: [UInt8]? = nil, tableIncarnation: String? = nil
    ) {
        self.preconditions = preconditions
        self.writes = writes
        self.notice = notice
        self.tableIncarnation = tableIncarnation
    }
}

/// The outcome of a change.
public enum TableOutcome: Hashable, Sendable {
    /// The change was applied, with this number: one more than the previous change.
    case changed(UInt64)
    /// A value has another version than expected: this one, and possibly more. Read again.
    case conflict(String)
    /// The table has `ClusterEngineLimits.valuesPerTable` values.
    case full
}

/// The notices of a table's changes.
public struct TableChangeFeed: Hashable, Sendable {
    /// The notice of one change.
    public struct Item: Hashable, Sendable {
        /// The number of the change.
        public let number: UInt64
        /// The content, from `TableChange.notice`.
        public let bytes: [UInt8]

        /// Creates a notice, for custom implementations.
        public init(_ number: UInt64, _ bytes: [UInt8]) {
            self.number = number
            self.bytes = bytes
        }
    }

    /// The incarnation of the table, which changes after a data loss; nil before the first change.
    public let tableIncarnation: String?
    /// The number of the newest change. It falls when the coordination store has lost the last ones.
    public let head: UInt64
    /// The number of the newest change whose notice was deleted; 0 if all are kept.
    public let truncatedThrough: UInt64
    /// The notices in the order of their numbers. Changes without notices are skipped.
    public let items: [Item]
    /// A Boolean value that indicates whether there are no more notices. If not, read again after the last one.
    public let isComplete: Bool

    /// Creates a change feed, for custom implementations.
    public init(tableIncarnation: String?, head: UInt64, truncatedThrough: UInt64, _ items: [Item], isComplete: Bool) {
        self.tableIncarnation = tableIncarnation
        self.head = head
        self.truncatedThrough = truncatedThrough
        self.items = items
        self.isComplete = isComplete
    }
}

/// An event for subscribers of a table.
public enum TableEvent: Equatable, Sendable {
    /// The change with this number has a notice.
    case noticesAvailable(UInt64)
    /// The coordination store was unreachable: read the change feed.
    case eventsMissed
    /// No more events follow.
    case ended(ClusterEngineError)
}
