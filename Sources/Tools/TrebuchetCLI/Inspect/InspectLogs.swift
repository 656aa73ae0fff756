import Commands
import Foundation
import Trebuchet

/// `trebuchet inspect logs`: shows recent log lines of one actor, one connection or all, without a log being written.
enum InspectLogs {
    static let spec = CommandSpec(
        name: "inspect logs",
        summary: "print log lines at level debug of an actor, of a connection, or all",
        operands: "[NAME|CONNECTION]", operandCount: 0...1,
        options: InspectorClient.options + [
            OptionSpec("--limit", "N", "newest lines, up to 2000 (200)"),
            OptionSpec("--actor", "NAME", "an actor whose name is a number"),
            OptionSpec("--follow", nil, "continue with new entries until stopped"),
            OptionSpec("--json", nil, "print one JSON object per line"),
        ],
        discussion: """
            A number selects a connection of 'inspect connections'; any other operand is the name of an actor.
            Recording begins with the first request and ends half a minute after the last, at any level of the server log.
              trebuchet inspect logs lists/a --follow --url 'http://127.0.0.1:9465/#token=…'
            """,
        run: { try await run($0) })

    private static func run(_ arguments: ParsedArguments) async throws {
        var query: [(name: String, value: String?)] = []
        if let actor = arguments.string("--actor") {
            guard arguments.operands.isEmpty else { throw UsageError("pass one actor or one connection") }
            query.append(("actor", actor))
        } else if let of = arguments.operands.first {
            query.append((UInt64(of) == nil ? "actor" : "connection", of))
        }
        let limit = try arguments.int("--limit", in: 1...2_000) ?? 200
        let inspector = try InspectorClient(arguments)
        let (isRaw, follows) = (arguments.has("--json"), arguments.has("--follow"))
        var (last, pauses) = (0, 0)
        repeat {
            let asked: [(name: String, value: String?)] = [
                ("after", "\(last)"), ("limit", "\(last == 0 ? limit : 2_000)"),
            ]
            var shown = try await inspector.fetchJSON("log", query + asked)
            // Recording has restarted, or the server is another one: the numbers start again.
            if shown["last"].count < last {
                (last, pauses) = (0, 0)
                shown = try await inspector.fetchJSON("log", query + [("limit", "2000")])
            }
            for line in shown["lines"].list.reversed() {
                Console.print(isRaw ? LogLine.ofJSON(line.json) : text(of: line))
            }
            if shown["pauses"].count > pauses {
                Console.error("trebuchet inspect: too many log lines to record all of them")
            }
            (last, pauses) = (shown["last"].count, shown["pauses"].count)
            if follows { try await Task.sleep(for: .seconds(1)) }
        } while follows
    }

    /// The order of fields in the log, since JSON members have none; other fields follow.
    private static let order = ["call", "connection", "address", "principal", "type", "actor", "method", "stream"]

    /// Returns a log line: `2026-05-01T12:00:00.007Z debug call ended connection=7 actor=lists/a method=add(_:) seconds=0.00031`.
    static func text(of line: LenientJSON) -> String {
        let time = Date(timeIntervalSince1970: line["time"].number / 1_000)
        var words = [
            time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)), line["level"].text ?? "-",
            plain(line["message"]),
        ]
        let fields = line["fields"]
        let names = order.filter(fields.names.contains) + fields.names.filter { !order.contains($0) }
        words += names.map { "\($0)=\(quoted(fields[$0]))" }
        return words.joined(separator: " ")
    }

    /// Quotes a value with spaces, as the log does.
    private static func quoted(_ value: LenientJSON) -> String {
        value.text?.contains(" ") == true ? value.json : plain(value)
    }

    private static func plain(_ value: LenientJSON) -> String {
        guard let text = value.text else { return value.json }
        let plain = LogLine.of(text)
        return plain.contains("\"") || plain.contains("=") ? LogLine.ofJSON(value.json) : plain
    }
}
