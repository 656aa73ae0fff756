internal import Platform

/// How far the opening of a store has come, which looks at all of its file.
public struct StoreProgress: Equatable, Sendable {
    /// Bytes whose checksums were found right so far.
    public let checked: Int
    /// Bytes of the file that are in use; some of them have no checksum, so `checked` ends below it.
    public let all: Int

    /// - Parameters:
    ///   - checked: bytes whose checksums were found right so far.
    ///   - all: bytes of the file that are in use.
    public init(checked: Int, all: Int) {
        self.checked = checked
        self.all = all
    }

    /// Full percent, 0 to 100.
    public var percent: Int { all > 0 ? min(100, checked * 100 / all) : 100 }
}

/// Tells of the progress now and then.
struct ProgressMeter {
    private let tell: (@Sendable (StoreProgress) -> Void)?
    private let all: Int
    /// Nanoseconds.
    private let interval: UInt64
    private var checked = 0
    private var lastTold = MonotonicClock.now
    /// The clock is not asked for every small row.
    private var unseen = 0

    init(_ options: SQLiteStore.Options, all: Int) {
        tell = options.onProgress
        interval = options.progressInterval.nanoseconds
        self.all = all
    }

    mutating func add(_ bytes: Int) {
        guard let tell else { return }
        checked += bytes
        unseen += bytes + 32
        guard unseen >= 64 << 10 else { return }
        unseen = 0
        look(tell)
    }

    /// Tells when it is time.
    mutating func look() {
        if let tell { look(tell) }
    }

    private mutating func look(_ tell: @Sendable (StoreProgress) -> Void) {
        let now = MonotonicClock.now
        guard now - lastTold >= interval else { return }
        lastTold = now
        tell(StoreProgress(checked: min(checked, all), all: all))
    }
}
