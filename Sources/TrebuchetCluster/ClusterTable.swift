internal import Platform

/// Values by names that all nodes read and change, of one purpose. All of a table lie in the slot of its name, so that one step changes
/// many of them.
public struct ClusterTable: Hashable, Sendable, CustomStringConvertible {
    /// Any text, up to `ClusterEngineLimits.nameBytes`; two are the same when their bytes are.
    public let id: String
    /// The slot of the name.
    public let slot: ClusterSlot

    /// The table of that name.
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
    /// What was put.
    public let bytes: [UInt8]
    /// The number of the change that has put it, at least 1. No other value of the table has it, before or after.
    public let version: UInt64

    /// For an engine of your own.
    public init(_ bytes: [UInt8], version: UInt64) {
        self.bytes = bytes
        self.version = version
    }
}

/// A value with its name.
public struct TableRow: Hashable, Sendable {
    /// Any text but the empty one, up to `ClusterEngineLimits.nameBytes`.
    public let name: String
    /// What stands there.
    public let value: TableValue

    /// For an engine of your own.
    public init(_ name: String, _ value: TableValue) {
        self.name = name
        self.value = value
    }
}

/// Some values of a table, by the bytes of their names.
public struct TablePage: Hashable, Sendable {
    /// In their order.
    public let rows: [TableRow]
    /// What the next page is `after`; nil when there is none.
    public let next: String?

    /// For an engine of your own.
    public init(_ rows: [TableRow], next: String?) {
        self.rows = rows
        self.next = next
    }
}

/// What is to be changed in a table: all of it, or nothing.
public struct TableChange: Hashable, Sendable {
    /// What becomes of a value.
    public enum Deed: Hashable, Sendable {
        /// It is this from now on.
        case put([UInt8])
        /// It is this, and goes by itself so long from now: up to a day, by the engine's clock.
        case lend([UInt8], lasting: Duration)
        /// It is a number in decimal, and grows by this, from 0 where there is none; what is no number counts as 0.
        case add(Int64)
        /// It goes.
        case delete
    }

    /// One value.
    public struct Write: Hashable, Sendable {
        /// Up to `ClusterEngineLimits.nameBytes`.
        public let name: String
        /// What becomes of it.
        public let deed: Deed

        /// A value and what becomes of it.
        public init(_ name: String, _ deed: Deed) {
            self.name = name
            self.deed = deed
        }
    }

    /// What was read before, and has to be so still.
    public struct Expectation: Hashable, Sendable {
        /// Of which value.
        public let name: String
        /// Its version; 0 when there was none.
        public let version: UInt64

        /// A value and its version.
        public init(_ name: String, version: UInt64) {
            self.name = name
            self.version = version
        }
    }

    /// What has to be as it was read.
    public var expected: [Expectation]
    /// In their order: of several for one name the last counts.
    public var writes: [Write]
    /// Told those who read the table's news; nil for nothing.
    public var news: [UInt8]?
    /// The table's life, as its news say it, when the change makes no sense in another one; it throws `dataLoss` there.
    public var life: String?

    /// Up to 1,000 expectations and writes each.
    public init(
        _ writes: [Write], expected: [Expectation] = [], news: [UInt8]? = nil, life: String? = nil
    ) {
        self.expected = expected
        self.writes = writes
        self.news = news
        self.life = life
    }
}

/// What came of a change.
public enum TableOutcome: Hashable, Sendable {
    /// It was done, and has this number: one more than the change before.
    case changed(UInt64)
    /// A value is not as expected: this one, or another one too. Read again.
    case conflict(String)
    /// The table has `ClusterEngineLimits.valuesPerTable` values.
    case full
}

/// What changes of a table told.
public struct TableNews: Hashable, Sendable {
    /// What one change told.
    public struct Item: Hashable, Sendable {
        /// The change's.
        public let number: UInt64
        /// `TableChange.news`.
        public let bytes: [UInt8]

        /// For an engine of your own.
        public init(_ number: UInt64, _ bytes: [UInt8]) {
            self.number = number
            self.bytes = bytes
        }
    }

    /// Which table it is: another one after the engine has lost what it kept; nil before the first change.
    public let life: String?
    /// The newest change. Lower than it was when the engine has lost the last ones.
    public let top: UInt64
    /// The newest change whose news are not kept any more; 0 when all are.
    public let cut: UInt64
    /// In the order of their numbers. Changes without news are not among them.
    public let items: [Item]
    /// Whether there are no more; else read again behind the last one.
    public let isComplete: Bool

    /// For an engine of your own.
    public init(life: String?, top: UInt64, cut: UInt64, _ items: [Item], isComplete: Bool) {
        self.life = life
        self.top = top
        self.cut = cut
        self.items = items
        self.isComplete = isComplete
    }
}

/// What comes to who watches a table.
public enum TableEvent: Equatable, Sendable {
    /// A change of this number has told something.
    case news(UInt64)
    /// The engine was out of reach: read the news.
    case mayHaveMissed
    /// Nothing comes any more; the last event.
    case ended(ClusterEngineError)
}
