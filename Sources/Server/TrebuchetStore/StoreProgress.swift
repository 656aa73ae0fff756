internal import Platform

/// The progress of opening a store, which checks its whole file.
public struct StoreProgress: Equatable, Sendable {
    /// The number of bytes with verified checksums so far.
    public let verifiedBytes: Int
    /// The number of used bytes of the file. Some have no checksum, so `checked` ends below it.
    public let totalBytes: Int

    /// Creates a progress report.
    ///
    /// - Parameters:
    ///   - verifiedBytes: the number of bytes with verified checksums so far.
    ///   - totalBytes: the number of used bytes of the file.
    public init(verifiedBytes: Int, totalBytes: Int) {
        self.verifiedBytes = verifiedBytes
        self.totalBytes = totalBytes
    }

    /// The progress in whole percent, 0 to 100.
    public var percent: Int { totalBytes > 0 ? min(100, verifiedBytes * 100 / totalBytes) : 100 }
}

/// Reports the progress at intervals.
struct ProgressReporter {
    private let report: (@Sendable (StoreProgress) -> Void)?
    private let all: Int
    /// The interval in nanoseconds.
    private let interval: UInt64
    private var checked = 0
    private var lastReport = MonotonicClock.now
    /// The number of bytes since the last read of the clock, which is not read for every small row.
    private var unseen = 0

    init(_ options: SQLiteStore.Options, all: Int) {
        report = options.onProgress
        interval = options.progressInterval.nanoseconds
        self.all = all
    }

    mutating func addBytes(_ bytes: Int) {
        guard let report else { return }
        checked += bytes
        unseen += bytes + 32
        guard unseen >= 64 << 10 else { return }
        unseen = 0
        reportIfDue(report)
    }

    /// Reports the progress if the interval has elapsed.
    mutating func reportIfDue() {
        if let report { reportIfDue(report) }
    }

    private mutating func reportIfDue(_ report: @Sendable (StoreProgress) -> Void) {
        let now = MonotonicClock.now
        guard now - lastReport >= interval else { return }
        lastReport = now
        report(StoreProgress(verifiedBytes: min(checked, all), totalBytes: all))
    }
}
