internal import Platform

/// The log of one name, in the slot of that name.
public struct ClusterLog: Hashable, Sendable, CustomStringConvertible {
    /// The name: any text, up to `ClusterEngineLimits.nameBytes`. Two names are equal if their bytes are.
    public let id: String
    /// The slot of the name.
    public let slot: ClusterSlot

    /// Creates the log of a name.
    public init(_ id: String) {
        self.id = id
        slot = ClusterSlot(of: id)
    }

    public var description: String { id }

    public static func == (left: Self, right: Self) -> Bool { left.id.isSameBytes(as: right.id) }

    public func hash(into hasher: inout Hasher) { id.hashBytes(into: &hasher) }
}

/// A position in a log. Both numbers matter: after a data loss, another entry may have the same offset.
public struct LogPosition: Hashable, Sendable, CustomStringConvertible {
    /// The fence of the entry's writer.
    public let fence: UInt64
    /// The number of entries so far, including this one.
    public let offset: UInt64

    /// Creates a position that was read before.
    public init(fence: UInt64, offset: UInt64) {
        self.fence = fence
        self.offset = offset
    }

    /// The position before the first entry.
    public static let start = LogPosition(fence: 0, offset: 0)

    /// The text of the position, such as `3:17`.
    public var description: String { "\(fence):\(offset)" }
}

/// One entry of a log.
public struct ClusterLogEntry: Hashable, Sendable {
    /// The position of the entry.
    public let position: LogPosition
    /// The content of the entry.
    public let payload: [UInt8]

    /// Creates an entry, for custom implementations.
    public init(_ position: LogPosition, _ payload: [UInt8]) {
        self.position = position
        self.payload = payload
    }
}

/// The content of an append.
public struct LogAppend: Hashable, Sendable {
    /// A call whose reply is recorded, so that a repeated call is not executed again.
    public struct Call: Hashable, Sendable {
        /// The ID of the call, up to `ClusterEngineLimits.callIDBytes`.
        public let id: String
        /// The reply to the call.
        public let reply: [UInt8]

        /// Creates a call with its reply.
        public init(id: String, reply: [UInt8]) {
            self.id = id
            self.reply = reply
        }
    }

    /// The offset of the newest entry known to the writer; 0 before the first.
    public let expectedHead: UInt64
    /// The content of the entry; nil for a call without a change, whose reply is recorded nevertheless.
    public let payload: [UInt8]?
    /// The call to record, if any.
    public let call: Call?

    /// Creates an append with an entry, a call to record, or both.
    public init(_ payload: [UInt8]?, expectedHead: UInt64, call: Call? = nil) {
        self.payload = payload
        self.expectedHead = expectedHead
        self.call = call
    }
}

/// The outcome of an append.
public enum AppendOutcome: Hashable, Sendable {
    /// The entry is in the log, at this offset. Without a payload it is the offset of the previous entry.
    case accepted(UInt64)
    /// The call was recorded before, with this reply; nothing was appended.
    case repeated([UInt8])
    /// The slot has had another owner since, or has none; with the newest fence. The lease is lost for good.
    case fenced(UInt64)
    /// The lease has expired, and the slot has no other owner yet; it may be renewed.
    case leaseExpired
    /// The newest entry has this offset instead of the expected one.
    case headMismatch(UInt64)
    /// The log has `ClusterEngineLimits.entriesPerLog` entries: store a snapshot first.
    case full
}

/// The outcome of storing a snapshot.
public enum SnapshotOutcome: Hashable, Sendable {
    /// The snapshot is stored.
    case stored
    /// The slot has had another owner since, as with an append.
    case fenced(UInt64)
    /// The lease has expired, as with an append.
    case leaseExpired
    /// The log has no entry at that offset, or has a newer snapshot.
    case positionMismatch
}

/// The state that results from a log's entries up to one of them.
public struct ClusterLogSnapshot: Hashable, Sendable {
    /// The position of the last included entry.
    public let position: LogPosition
    /// The content of the snapshot.
    public let bytes: [UInt8]

    /// Creates a snapshot, for custom implementations.
    public init(_ position: LogPosition, _ bytes: [UInt8]) {
        self.position = position
        self.bytes = bytes
    }
}

/// The result of reading a log.
public struct LogReadResult: Hashable, Sendable {
    /// The state from which the entries continue.
    public enum Start: Hashable, Sendable {
        /// The reader's position: the entries follow it.
        case resumed
        /// A snapshot: the reader must drop its earlier state.
        case snapshot(ClusterLogSnapshot)
        /// The empty log: the reader must drop its earlier state, and the entries begin with the first one.
        case start
    }

    /// The state from which the entries continue.
    public let start: Start
    /// The entries in order, without a gap.
    public let entries: [ClusterLogEntry]
    /// The position of the newest entry of the log.
    public let head: LogPosition

    /// Creates a result, for custom implementations.
    public init(_ start: Start, _ entries: [ClusterLogEntry], head: LogPosition) {
        self.start = start
        self.entries = entries
        self.head = head
    }

    /// A Boolean value that indicates whether there are no more entries. If not, read again after the last entry.
    public var isComplete: Bool {
        if let last = entries.last { return last.position == head }
        return switch start {
        case .resumed: true
        case .snapshot(let snapshot): snapshot.position == head
        case .start: head == .start
        }
    }
}

/// An event for subscribers of a log.
public enum LogEvent: Equatable, Sendable {
    /// An entry was appended.
    case appended(ClusterLogEntry)
    /// The coordination store was unreachable: read the entries that may have been appended meanwhile.
    case eventsMissed
    /// No more events follow.
    case ended(ClusterEngineError)
}
