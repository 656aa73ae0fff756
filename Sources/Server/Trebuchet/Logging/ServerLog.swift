internal import Platform
internal import Synchronization
public import TrebuchetActors

/// Writes log lines for operators: connections, rejections, calls and failures, with machine-readable fields.
///
///     let server = TrebuchetServer(transport: transport, log: ServerLog(level: .info, format: .json))
///
/// A line has the time, the level, the message and, as far as known, `connection`, `address`, `principal`, `type`, `actor`,
/// `method` and `seconds`. It never contains arguments, results, states, tokens or codes. Rejections and limits of one kind are
/// logged once a second at most, since any client can cause them.
///
/// A separate thread, which may block, writes the lines. While standard error is slow, up to 1 MiB of lines wait; further lines
/// are dropped, and a line states their number.
public final class ServerLog: ServerEventHandler {
    /// The format of lines.
    public enum Format: String, Sendable, CaseIterable {
        /// `2026-05-01T12:00:00.000Z info connection opened connection=7 address=127.0.0.1:50412`
        case text
        /// One JSON object per line, with `time`, `level` and `message`.
        case json
    }

    /// The kinds of events that the log receives, depending on `level`.
    public let kinds: ServerEvent.Kinds
    /// The minimum level; lines below it are not written.
    public let level: ServerEvent.Level
    private let format: Format
    private let lines: LogQueue
    private let pauses = Mutex(LogRateLimiter())

    /// - Parameters:
    ///   - level: the minimum level of lines. `notice`, the default, includes rejections, limits and failures; `info`
    ///     connections and
    ///     sign-ins; `debug` calls, streams and actors; `trace` versions and deliveries, which is too verbose for continuous
    ///     use.
    ///   - format: text by default.
    ///   - write: receives each line in order on a thread that may block; standard error by default.
    public init(
        level: ServerEvent.Level = .notice, format: Format = .text, write: (@Sendable (String) -> Void)? = nil
    ) {
        self.level = level
        self.format = format
        lines = LogQueue(write ?? { _ = StandardStream.error.write($0 + "\n") })
        var kinds: ServerEvent.Kinds = [.server, .rejections, .limits, .store]
        if level <= .info { kinds.insert(.connections) }
        if level <= .debug { kinds.formUnion([.calls, .streams, .actors]) }
        if level <= .trace { kinds.formUnion([.versions, .deliveries]) }
        self.kinds = kinds
    }

    /// Receives an event from the server that the log was added to.
    public func handle(_ event: ServerEvent) {
        guard let line = LogRecord(event), line.level >= level else { return }
        guard let pause = line.pause else { return write(line) }
        let left = pauses.withLock { $0.admitLine(pause, at: MonotonicClock.now) }
        guard let left else { return }
        var rest = line
        if left > 0 { rest.fields.append(("omitted", .number(Double(left)))) }
        write(rest)
    }

    /// Writes a line of the program.
    public func log(_ level: ServerEvent.Level, _ text: String) {
        guard level >= self.level else { return }
        write(LogRecord(level, LogLine.of(text)))
    }

    /// Returns when all lines so far are written or `patience` has elapsed, since the reader may have stopped. It blocks; call
    /// it before the program ends.
    ///
    /// - Parameter patience: a second by default.
    public func flush(timeout patience: Duration = .seconds(1)) { lines.flush(within: patience) }

    private func write(_ entry: LogRecord) {
        let time = LogTime.now
        lines.append(format == .json ? entry.json(at: time) : entry.text(at: time))
    }
}

/// Limits events that any client can cause to one line a second for each kind.
struct LogRateLimiter {
    private static let pause: UInt64 = 1_000_000_000

    private var kinds: [String: (next: UInt64, unreported: Int)] = [:]

    /// Returns the number of lines suppressed before this one, or nil if this one is suppressed too.
    ///
    /// - Parameter kind: one of a small fixed set.
    mutating func admitLine(_ kind: String, at now: UInt64) -> Int? {
        let state = kinds[kind] ?? (0, 0)
        guard now >= state.next else {
            kinds[kind]?.unreported += 1
            return nil
        }
        kinds[kind] = (now &+ Self.pause, 0)
        return state.unreported
    }
}
