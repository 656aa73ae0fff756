internal import Trebuchet
internal import TrebuchetActors

/// The query for log lines: `?after=17&limit=100&connection=3&actor=todos`.
struct LogQuery {
    /// A position in the ring; only later entries are shown.
    let after: UInt64
    let limit: Int
    private let connection: Double?
    private let actor: String?

    init(_ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        after = UInt64(try query.number("after", in: 0...Int.max) ?? 0)
        limit = try query.number("limit", in: 1...RecentCallBuffer.capacity) ?? 200
        connection = try query.number("connection", in: 0...Int.max).map { Double($0) }
        // Escape the name as log lines do.
        actor = query.text("actor").map { LogLine.ofName($0) }
    }

    func matches(_ line: LogRecord) -> Bool {
        func has(_ name: String, _ value: LogRecord.Value) -> Bool {
            line.fields.contains { $0.name == name && $0.value == value }
        }
        return connection.map { has("connection", .number($0)) } ?? true
            && actor.map { has("actor", .text($0)) } ?? true
    }
}

extension RecentCallBuffer.Outcome {
    /// The event that a log would receive, with its time.
    var event: (event: ServerEvent, time: Int64)? {
        switch self {
        case .ended(let entry):
            guard let call = entry.call else { return nil }
            let duration = entry.duration ?? .zero
            return (
                .callEnded(call, duration: duration, error: entry.error),
                entry.began + Int64(duration / .milliseconds(1))
            )
        case .refused(let refused):
            return (
                .callRejected(
                    refused.peer, actor: refused.actor, target: refused.target, error: refused.error,
                    reason: refused.reason), refused.time
            )
        case .event(let event, let time): return (event, time)
        }
    }
}

extension RecentCallBuffer {
    /// Returns the recorded events as log lines of level `debug`, the newest first.
    func log(_ query: LogQuery, pauses: UInt64) -> InspectorJSON {
        var lines: [InspectorJSON] = []
        for entry in newest {
            guard lines.count < query.limit, entry.number > query.after else { break }
            guard let (event, time) = entry.outcome.event, let line = LogRecord(event), query.matches(line) else {
                continue
            }
            let fields = line.fields.map { field -> (String, InspectorJSON) in
                switch field.value {
                case .text(let text): (field.name, .text(text))
                case .number(let number): (field.name, Int64(exactly: number).map { .integer($0) } ?? .number(number))
                }
            }
            lines.append(
                .object([
                    ("number", .count(entry.number)), ("time", .integer(time)), ("level", .text(line.level.rawValue)),
                    ("message", .text(line.message)), ("fields", .object(fields)),
                ]))
        }
        return .object([("last", .count(lastNumber)), ("pauses", .count(pauses)), ("lines", .list(lines))])
    }
}
