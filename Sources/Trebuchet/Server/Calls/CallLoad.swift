internal import TrebuchetWire

/// What the calls of one connection weigh that have not ended yet.
struct CallLoad {
    /// Calls that run in place on another reactor at once; then the connection is not read from until half of them are back.
    static let mostInTransit = 256
    static let mostBytesInTransit = 1 << 20
    /// What a call that takes time weighs beside its message: its timer, its place in queues, what was found in the message.
    static let overhead = ServerTerms.callOverhead

    /// Bytes of the calls that count.
    var bytes = 0
    // Small, since each idle connection has them.
    private var shortCount: Int32 = 0
    private var shortInTransit: Int32 = 0
    private var shortBytesInTransit: Int32 = 0
    private var shortAnswered: Int32 = 0
    var isPaused = false

    /// Calls that take time: those that wait for their actor, or run in a task.
    var count: Int {
        get { Int(shortCount) }
        set { shortCount = Int32(newValue) }
    }
    /// Calls that run in place on another reactor: they end soon, and do not count.
    var inTransit: Int {
        get { Int(shortInTransit) }
        set { shortInTransit = Int32(newValue) }
    }
    /// Their bytes, which stay below `mostBytesInTransit` and what one read brings.
    var bytesInTransit: Int {
        get { Int(shortBytesInTransit) }
        set { shortBytesInTransit = Int32(newValue) }
    }

    /// Calls beside those that have been answered, since their time was over or nobody wanted them any more, and whose methods have not
    /// returned. There may be as many of them as of the others.
    var answered: Int {
        get { Int(shortAnswered) }
        set { shortAnswered = Int32(newValue) }
    }

    var isFull: Bool { inTransit >= Self.mostInTransit || bytesInTransit >= Self.mostBytesInTransit }
    var isHalfEmpty: Bool { inTransit * 2 <= Self.mostInTransit && bytesInTransit * 2 <= Self.mostBytesInTransit }
}
