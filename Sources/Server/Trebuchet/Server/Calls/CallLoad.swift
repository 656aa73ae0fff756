internal import TrebuchetWire

/// The accounting of the running calls of one connection.
struct CallLoad {
    /// The maximum number of in-place calls on other reactors. At the limit the connection is not read until half of them have
    /// returned.
    static let maximumInTransitCalls = 256
    static let maximumInTransitBytes = 1 << 20
    /// The memory of a call that takes time, besides its message: its timer, its queue entries, the scan result.
    static let overhead = AdvertisedLimits.callOverhead

    /// Bytes of the calls that count.
    var bytes = 0
    // Small, since each idle connection has them.
    private var shortCount: Int32 = 0
    private var shortInTransit: Int32 = 0
    private var shortBytesInTransit: Int32 = 0
    private var shortAnswered: Int32 = 0
    var isPaused = false

    /// The number of calls that take time: they wait for their actor, or run in a task.
    var count: Int {
        get { Int(shortCount) }
        set { shortCount = Int32(newValue) }
    }
    /// The number of calls that run in place on another reactor: they end soon, and do not count.
    var inTransit: Int {
        get { Int(shortInTransit) }
        set { shortInTransit = Int32(newValue) }
    }
    /// Their bytes, at most `maximumInTransitBytes` plus one read.
    var bytesInTransit: Int {
        get { Int(shortBytesInTransit) }
        set { shortBytesInTransit = Int32(newValue) }
    }

    /// The number of calls that were answered by timeout or cancellation while their methods still run. It has the same limit as
    /// `count`.
    var answered: Int {
        get { Int(shortAnswered) }
        set { shortAnswered = Int32(newValue) }
    }

    var isFull: Bool { inTransit >= Self.maximumInTransitCalls || bytesInTransit >= Self.maximumInTransitBytes }
    var isHalfEmpty: Bool {
        inTransit * 2 <= Self.maximumInTransitCalls && bytesInTransit * 2 <= Self.maximumInTransitBytes
    }
}
