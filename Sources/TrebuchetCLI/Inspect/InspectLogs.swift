import Commands
import Foundation
import Trebuchet

/// `trebuchet inspect logs`: the log of one actor, of one connection, or of all, without a log being written.
enum InspectLogs {
    static let spec = CommandSpec(
        name: "inspect logs",
        summary: "print what has happened with an actor or a connection, or all, as the log has it at the level debug",
        operands: "[NAME|CONNECTION]", operandCount: 0...1,
        options: InspectorClient.options + [
            OptionSpec("--limit", "N", "how many of the newest lines, up to 2000 (200)"),
            OptionSpec("--actor", "NAME", "the actor, where its name is a number"),
            OptionSpec("--follow", nil, "go on with what happens from now on, until it is stopped"),
            OptionSpec("--json", nil, "an object in each line"),
        ],
        discussion: """
            A number is a connection, as 'inspect connections' shows it, and all else the name of an actor.
            The first look begins to note lines, also where the log itself has less. Half a minute after the last look it ends.
              trebuchet inspect logs lists/a --follow --url 'http://127.0.0.1:9465/#token=…'
            """,
        run: { try await run($0) })

    private static func run(_ arguments: ParsedArguments) async throws {
        var query: [(name: String, value: String?)] = []
        if let actor = arguments.string("--actor") {
            guard arguments.operands.isEmpty else { throw UsageError("name one actor or one connection") }
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
            var shown = try await inspector.shown("log", query + asked)
            // Nobody has looked for a while, or the server is another one: its numbers begin anew.
            if shown["last"].count < last {
                (last, pauses) = (0, 0)
                shown = try await inspector.shown("log", query + [("limit", "2000")])
            }
            for line in shown["lines"].list.reversed() {
                Console.print(isRaw ? LogLine.ofJSON(line.json) : text(of: line))
            }
            if shown["pauses"].count > pauses {
                Console.error("trebuchet inspect: there was too much to note all of it")
            }
            (last, pauses) = (shown["last"].count, shown["pauses"].count)
            if follows { try await Task.sleep(for: .seconds(1)) }
        } while follows
    }

    /// The order in which the log has them, for JSON has none; others come behind.
    private static let order = ["call", "connection", "address", "principal", "type", "actor", "method", "stream"]

    /// `2026-05-01T12:00:00.007Z debug call connection=7 actor=lists/a method=add(_:) seconds=0.00031`
    static func text(of line: Shown) -> String {
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

    /// As the log has it: with quotes where it has spaces.
    private static func quoted(_ value: Shown) -> String {
        value.text?.contains(" ") == true ? value.json : plain(value)
    }

    private static func plain(_ value: Shown) -> String {
        guard let text = value.text else { return value.json }
        let plain = LogLine.of(text)
        return plain.contains("\"") || plain.contains("=") ? LogLine.ofJSON(value.json) : plain
    }
}
