internal import Platform

/// The progress of opening a store, which checks its whole file.
public struct StoreProgress: Equatable, Sendable {
    /// The number of bytes with verified checksums so far.
    public let checked: Int
    /// The number of used bytes of the file. Some have no checksum, so `checked` ends below it.
    public let all: Int

    /// Creates a progress report.
    ///
    /// - Parameters:
    ///   - checked: the number of bytes with verified checksums so far.
    ///   - all: the number of used bytes of the file.
    public init(checked: Int, all: Int) {
        self.checked = checked
        self.all = all
    }

    /// The progress in whole percent, 0 to 100.
    public var percent: Int { all > 0 ? min(100, checked * 100 / all) : 100 }
}

/// Reports the progress at intervals.
struct ProgressReporter {
    private let tell: (@Sendable (StoreProgress) -> Void)?
    private let all: Int
    /// The interval in nanoseconds.
    private let interval: UInt64
    private var checked = 0
    private var lastTold = MonotonicClock.now
    /// The number of bytes since the last read of the clock, which is not read for every small row.
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

    /// Reports the progress if the interval has elapsed.
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
