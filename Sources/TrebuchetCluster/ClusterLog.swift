internal import Platform

/// The log of one name, in the slot of that name.
public struct ClusterLog: Hashable, Sendable, CustomStringConvertible {
    /// Any text, up to `ClusterEngineLimits.nameBytes`; two are the same when their bytes are.
    public let id: String
    /// The slot of the name.
    public let slot: ClusterSlot

    /// The log of that name.
    public init(_ id: String) {
        self.id = id
        slot = ClusterSlot(of: id)
    }

    public var description: String { id }

    public static func == (left: Self, right: Self) -> Bool { left.id.isSameBytes(as: right.id) }

    public func hash(into hasher: inout Hasher) { id.hashBytes(into: &hasher) }
}

/// Where in a log somebody is. Both numbers count: behind an entry that was lost with its engine another one may have its offset.
public struct LogPosition: Hashable, Sendable, CustomStringConvertible {
    /// The fence of who wrote the entry.
    public let fence: UInt64
    /// How many entries there have been, that one among them.
    public let offset: UInt64

    /// For what was read before.
    public init(fence: UInt64, offset: UInt64) {
        self.fence = fence
        self.offset = offset
    }

    /// Before the first entry.
    public static let start = LogPosition(fence: 0, offset: 0)

    /// `3:17`
    public var description: String { "\(fence):\(offset)" }
}

/// One entry of a log.
public struct ClusterLogEntry: Hashable, Sendable {
    /// Where it stands.
    public let position: LogPosition
    /// What was appended.
    public let payload: [UInt8]

    /// For an engine of your own.
    public init(_ position: LogPosition, _ payload: [UInt8]) {
        self.position = position
        self.payload = payload
    }
}

/// What is to be appended.
public struct LogAppend: Hashable, Sendable {
    /// A call whose reply is kept, so that it is not run again when it comes again.
    public struct Call: Hashable, Sendable {
        /// The call's name, up to `ClusterEngineLimits.callIDBytes`.
        public let id: String
        /// What it was answered with.
        public let reply: [UInt8]

        /// A call and its reply.
        public init(id: String, reply: [UInt8]) {
            self.id = id
            self.reply = reply
        }
    }

    /// The offset of the newest entry, as the writer knows it; 0 before the first.
    public let expectedTop: UInt64
    /// The entry; nil for a call that changed nothing, whose reply is recorded all the same.
    public let payload: [UInt8]?
    /// The call to record, if any.
    public let call: Call?

    /// An entry, a call to record, or both.
    public init(_ payload: [UInt8]?, expectedTop: UInt64, call: Call? = nil) {
        self.payload = payload
        self.expectedTop = expectedTop
        self.call = call
    }
}

/// What came of an append.
public enum AppendOutcome: Hashable, Sendable {
    /// It is in the log, at this offset (without a payload: the offset is that of the entry before).
    case accepted(UInt64)
    /// The call was recorded before, with this reply; nothing was appended.
    case repeated([UInt8])
    /// Somebody else has owned the slot since, or nobody does; the newest fence. The lease is lost for ever.
    case fenced(UInt64)
    /// The lease has run out, and nobody has taken the slot yet; it may be renewed.
    case leaseOver
    /// The newest entry has this offset, not the expected one.
    case topDiffers(UInt64)
    /// The log has `ClusterEngineLimits.entriesPerLog` entries: store a snapshot first.
    case full
}

/// What came of a snapshot.
public enum SnapshotOutcome: Hashable, Sendable {
    /// It is kept.
    case stored
    /// As with an append.
    case fenced(UInt64)
    /// As with an append.
    case leaseOver
    /// The log has no entry at that offset, or has a newer snapshot.
    case misplaced
}

/// The whole of what entries make, up to one of them.
public struct ClusterLogSnapshot: Hashable, Sendable {
    /// The last entry that is part of it.
    public let position: LogPosition
    /// What was stored.
    public let bytes: [UInt8]

    /// For an engine of your own.
    public init(_ position: LogPosition, _ bytes: [UInt8]) {
        self.position = position
        self.bytes = bytes
    }
}

/// What a reader lacks.
public struct LogReading: Hashable, Sendable {
    /// Where to go on from.
    public enum Beginning: Hashable, Sendable {
        /// From where the reader was: the entries are those behind.
        case resumed
        /// From the snapshot: what the reader has is to be forgotten.
        case snapshot(ClusterLogSnapshot)
        /// From nothing: what the reader has is to be forgotten, and the entries begin with the first there has been.
        case start
    }

    /// Where the entries go on from.
    public let beginning: Beginning
    /// In their order, without a gap.
    public let entries: [ClusterLogEntry]
    /// The newest entry of the log.
    public let top: LogPosition

    /// For an engine of your own.
    public init(_ beginning: Beginning, _ entries: [ClusterLogEntry], top: LogPosition) {
        self.beginning = beginning
        self.entries = entries
        self.top = top
    }

    /// Whether there is no more than this; else read again behind the last entry.
    public var isComplete: Bool {
        if let last = entries.last { return last.position == top }
        return switch beginning {
        case .resumed: true
        case .snapshot(let snapshot): snapshot.position == top
        case .start: top == .start
        }
    }
}

/// What comes to who watches a log.
public enum LogEvent: Equatable, Sendable {
    /// An entry was appended.
    case appended(ClusterLogEntry)
    /// The engine was out of reach: read what may have been appended meanwhile.
    case mayHaveMissed
    /// Nothing comes any more; the last event.
    case ended(ClusterEngineError)
}
