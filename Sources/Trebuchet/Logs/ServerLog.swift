internal import Platform
internal import Synchronization
public import TrebuchetActors

/// What a server says to who operates it, in lines: of connections, refusals, calls, what fails, with fields that programs can read.
///
///     let log = ServerLog(level: .info, format: .json)
///     server.addListener(log)
///
/// A line has the time, the level, what happened, and as far as they are known `connection`, `address`, `principal`, `type` and `actor`,
/// `method` and `seconds`. Arguments, results, states, tokens and codes are in none. Of refusals and limits of one kind there is a line a second
/// at most, since strangers can make as many as they like.
///
/// Lines are written by a thread that may wait. When standard error takes them too slowly, up to 1 MiB of them wait; what comes beyond that is
/// left out, and a line says how many.
public final class ServerLog: ServerListener {
    /// How lines look.
    public enum Format: String, Sendable, CaseIterable {
        /// `2026-05-01T12:00:00.000Z info connection opened connection=7 address=127.0.0.1:50412`
        case text
        /// An object in each line, with `time`, `level` and `message` in it.
        case json
    }

    /// A line on standard error, without time and level; what a server writes by default. It does not wait: lines are written by a thread
    /// of their own, as those of a `ServerLog` are, and a program that ends in order waits for the last ones, for a second at most.
    public static let standardError: @Sendable (String) -> Void = { line in
        StandardStream.error.write(soon: "trebuchet: \(line)")
    }

    /// What it is told of, by its level.
    public let kinds: ServerEvent.Kinds
    /// Lines that matter less are left out.
    public let level: ServerEvent.Level
    private let format: Format
    private let lines: LogQueue
    private let pauses = Mutex(LogPauses())

    /// - Parameters:
    ///   - level: lines from this one on. `notice`, the default, has refusals, limits and what fails; `info` connections and sign-ins; `debug`
    ///     calls, streams and actors; `trace` versions and deliveries, which is for seconds, not for days.
    ///   - format: text by default.
    ///   - write: told of each line, one after another, on a thread that may wait; standard error by default.
    public init(
        level: ServerEvent.Level = .notice, format: Format = .text, write: (@Sendable (String) -> Void)? = nil
    ) {
        self.level = level
        self.format = format
        lines = LogQueue(write ?? { _ = StandardStream.error.write($0 + "\n") })
        var kinds: ServerEvent.Kinds = [.server, .refusals, .limits, .store]
        if level <= .info { kinds.insert(.connections) }
        if level <= .debug { kinds.formUnion([.calls, .streams, .actors]) }
        if level <= .trace { kinds.formUnion([.versions, .deliveries]) }
        self.kinds = kinds
    }

    /// Told by the server that it listens to.
    public func hear(_ event: ServerEvent) {
        guard let line = LogRecord(event), line.level >= level else { return }
        guard let pause = line.pause else { return write(line) }
        let left = pauses.withLock { $0.begin(pause, at: MonotonicClock.now) }
        guard let left else { return }
        var rest = line
        if left > 0 { rest.fields.append(("unsaid", .number(Double(left)))) }
        write(rest)
    }

    /// A line of the program's own.
    public func line(_ level: ServerEvent.Level, _ text: String) {
        guard level >= self.level else { return }
        write(LogRecord(level, LogLine.of(text)))
    }

    /// Returns when all lines so far are written, or `patience` is over: who reads them may have stopped. It blocks; for the end of a program.
    ///
    /// - Parameter patience: a second by default.
    public func flush(within patience: Duration = .seconds(1)) { lines.flush(within: patience) }

    private func write(_ entry: LogRecord) {
        let time = LogTime.now
        lines.append(format == .json ? entry.json(at: time) : entry.text(at: time))
    }
}

/// Of what strangers can bring about as often as they like a line a second of each kind.
struct LogPauses {
    private static let pause: UInt64 = 1_000_000_000

    private var kinds: [String: (next: UInt64, unsaid: Int)] = [:]

    /// How many were left out before this one; nil when it is left out, too.
    ///
    /// - Parameter kind: one of few.
    mutating func begin(_ kind: String, at now: UInt64) -> Int? {
        let state = kinds[kind] ?? (0, 0)
        guard now >= state.next else {
            kinds[kind]?.unsaid += 1
            return nil
        }
        kinds[kind] = (now &+ Self.pause, 0)
        return state.unsaid
    }
}
