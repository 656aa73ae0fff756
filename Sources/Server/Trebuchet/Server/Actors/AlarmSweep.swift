internal import Platform
internal import TrebuchetActors

/// Decides which alarms of a store a server delivers next: a pure core, which reads no clock and no store.
///
/// The store has one row for each actor with alarms, in the order of the times at which they are due. The sweep reads the due rows in
/// pages and has at most `concurrent` deliveries in flight. Rows behind its position are read again after a failure, and when a row
/// was written before its position.
struct AlarmSweep {
    typealias Row = AlarmRow

    /// The next step of the server.
    enum Step: Equatable {
        /// Deliver the due alarms of an actor, then call `didDeliver`.
        case deliver(Row)
        /// Read rows behind a name, then call `didRead`.
        case read(after: String?, limit: Int)
        /// Call `resume` at this time, or never for nil; `didWrite` may require an earlier one.
        case wait(until: Int64?)
        /// Wait as well, and call `restart` after the given number of consecutive sweeps with failures.
        case retry(failures: Int, until: Int64?)
        /// A read or a delivery has to end first.
        case none
    }

    /// The number of rows that are read at a time.
    static let pageSize = 256

    private let concurrent: Int
    /// The name of the last row that was delivered or passed over.
    private var position: String?
    /// Due rows that were read.
    private var rows: ArraySlice<Row> = []
    /// The actors whose alarms are being delivered.
    private var inFlight: Set<ByteText> = []
    /// The earliest times of rows of these actors that were passed over meanwhile.
    private var passedOver: [ByteText: Int64] = [:]
    private var isReading = false
    /// The earliest time of the rows that were written during a read, which may lack them.
    private var writtenDuringRead: Int64?
    /// Set when all due rows behind the position were read.
    private var isExhausted = false
    /// The time of the first row that is not due yet.
    private var nextTime: Int64?
    private var hasFailures = false
    private var failures = 0

    init(concurrent: Int) { self.concurrent = max(1, concurrent) }

    /// The number of deliveries in flight.
    var inFlightCount: Int { inFlight.count }

    /// Returns the next step.
    mutating func next() -> Step {
        while inFlight.count < concurrent, let row = rows.popFirst() {
            position = row.name
            let actor = ByteText(row.actor)
            if inFlight.insert(actor).inserted { return .deliver(row) }
            passedOver[actor] = min(passedOver[actor] ?? row.time, row.time)
        }
        guard rows.isEmpty, !isReading else { return .none }
        guard isExhausted else {
            isReading = true
            return .read(after: position, limit: Self.pageSize)
        }
        if !hasFailures {
            if inFlight.isEmpty { failures = 0 }
            return .wait(until: nextTime)
        }
        // Also while others are in flight, which may take long.
        return .retry(failures: failures + 1, until: nextTime)
    }

    /// Accepts the rows that were read, in the order of their times; nil after an error.
    ///
    /// - Parameters:
    ///   - last: the name of the last row of the page, also if it is invalid.
    ///   - isLast: true if the store has no rows behind them.
    ///   - isPartial: true if other rows could not be read. All rows are read again later.
    ///   - now: the time of day in milliseconds since 1970.
    mutating func didRead(
        _ page: [Row]?, last: String? = nil, isLast: Bool, isPartial: Bool = false, at now: Int64
    ) {
        isReading = false
        if isPartial { hasFailures = true }
        let written = writtenDuringRead
        writtenDuringRead = nil
        if let page {
            rows = page.prefix { $0.time <= now }
            nextTime = rows.endIndex < page.endIndex ? page[rows.endIndex].time : nil
            isExhausted = nextTime != nil || isLast
            // A page of invalid names must not be read again.
            if page.isEmpty, let last { position = last }
        } else {
            (isExhausted, hasFailures, nextTime) = (true, true, nil)
        }
        if let written { didWrite(written) }
    }

    /// Ends a delivery. After a failure the row is read again later.
    mutating func didDeliver(_ row: Row, isFailed: Bool) {
        if isFailed { hasFailures = true }
        let actor = ByteText(row.actor)
        inFlight.remove(actor)
        // After a failure `restart` reads it again, with all others, after a delay.
        if let time = passedOver.removeValue(forKey: actor), !isFailed { didWrite(time) }
    }

    /// Accounts for a row that was written with this time.
    mutating func didWrite(_ time: Int64) {
        guard !isReading else {
            writtenDuringRead = min(writtenDuringRead ?? time, time)
            return
        }
        let start = AlarmNamespace.start(of: time)
        if let last = rows.last?.name ?? position, start.precedesInBytes(last) {
            // All rows from this time on are read again, in their order.
            if let position, start.precedesInBytes(position) { self.position = start }
            (rows, isExhausted, nextTime) = ([], false, nil)
        } else if isExhausted {
            nextTime = min(nextTime ?? time, time)
        }
    }

    /// Reads on, at the time of `wait`.
    mutating func resume(at now: Int64) {
        if let nextTime, nextTime <= now { (isExhausted, self.nextTime) = (false, nil) }
    }

    /// Reads all rows again, after failures.
    mutating func restart() {
        guard hasFailures, !isReading else { return }
        failures += 1
        (position, rows, isExhausted, nextTime, hasFailures) = (nil, [], false, nil, false)
    }
}
