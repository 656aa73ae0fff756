import Commands
import Foundation
import Platform
import Trebuchet

/// `trebuchet inspect`: shows the actors, connections and calls of a running server.
enum InspectCommand {
    static let spec = CommandSpec(
        name: "inspect",
        summary: "show actors, connections, calls and logs of a server with --inspector",
        subcommands: [overview, actors, actor, connections, calls, InspectLogs.spec, store, nodes],
        discussion: """
            Connects to the inspector of 'trebuchet serve --inspector', with the link that it prints at its start, or at a remote
            address with the token of --inspector-token-file.
            A remote inspector needs a trusted certificate; SSL_CERT_FILE names a file with further authorities.
              trebuchet inspect actors --url 'http://127.0.0.1:9465/#token=…'
            """,
        run: { _ in })

    private static let options =
        InspectorClient.options + [OptionSpec("--json", nil, "print the inspector's JSON")]
    private static let pages = [
        OptionSpec("--page", "N", "page of the list, from 0 (0)"),
        OptionSpec("--size", "N", "entries per page, up to 1000 (100)"),
    ]

    private static let overview = CommandSpec(
        name: "inspect overview", summary: "print the overview of the server once",
        options: options,
        run: { arguments in
            try await show(arguments, "overview") { TopMetricsView.lines(of: $0) }
        })

    private static let actors = CommandSpec(
        name: "inspect actors", summary: "list active actors by name",
        options: options + pages + [
            OptionSpec("--type", "TYPE", "actors of this type, such as Demo.TodoList or TodoList"),
            OptionSpec("--search", "TEXT", "actors whose names contain this text"),
        ],
        run: { arguments in
            try await show(
                arguments, "actors",
                query(arguments) + [("type", arguments.string("--type")), ("search", arguments.string("--search"))]
            ) { shown in
                var table = TextTable(["ACTOR", "TYPE", "REACTOR", ""])
                for actor in shown["actors"].list {
                    let labels = [("onDemand", "on demand"), ("clustered", "of the cluster")].filter {
                        actor[$0.0].isTrue
                    }
                    table.addRow([
                        actor["name"].text ?? "", actor["type"].text ?? "", actor["reactor"].text ?? "-",
                        (actor["ready"].isTrue ? labels.map(\.1) : ["not loaded"]).joined(separator: ", "),
                    ])
                }
                return table.lines + [footer(shown, "actor", all: shown["all"].count)]
            }
        })

    private static let actor = CommandSpec(
        name: "inspect actor",
        summary:
            "print the states of an active actor, and its recorded versions with the calls that changed them",
        operands: "<actor>", operandCount: 1...1,
        options: options + [OptionSpec("--versions", "N", "newest versions, up to 200 (20)")],
        discussion: """
            Recording begins with the first request and ends half a minute after the last; earlier versions are not shown.
            An inactive actor is not activated.
            """,
        run: { arguments in
            let versions = try arguments.int("--versions", in: 0...200) ?? 20
            let path = "actors/" + InspectorClient.encoded(arguments.operands[0])
            try await show(arguments, path, [("versions", "\(versions)")]) { lines(ofActor: $0) }
        })

    private static let connections = CommandSpec(
        name: "inspect connections", summary: "list connections, oldest first", options: options + pages,
        run: { arguments in
            try await show(arguments, "connections", query(arguments)) { shown in
                var table = TextTable([
                    "CONNECTION", "ADDRESS", "PRINCIPAL", "PROTOCOL", "AGE", "STREAMS", "CALLS", "BUFFERED",
                    "LAST ERROR", "",
                ])
                for connection in shown["connections"].list {
                    let labels = [
                        connection["writable"].isTrue ? nil : "slow reader",
                        connection["draining"].isTrue ? "draining" : nil,
                        connection["ofNode"].isTrue ? "from another node" : nil,
                    ]
                    table.addRow([
                        "\(connection["connection"].count)", connection["address"].text ?? "-",
                        connection["principal"].text ?? "-", "\(connection["protocol"].count)",
                        "\(connection["seconds"].count) s",
                        "\(connection["streams"].count)", "\(connection["calls"].count)",
                        TopMetricsView.bytes(connection["bufferedBytes"].number), error(of: connection["lastError"]),
                        labels.compactMap { $0 }.joined(separator: ", "),
                    ])
                }
                return table.lines + [footer(shown, "connection", all: shown["found"].count)]
            }
        })

    private static let calls = CommandSpec(
        name: "inspect calls", summary: "list recorded calls, newest first",
        options: options + [
            OptionSpec("--limit", "N", "newest entries, up to 2000 (100)"),
            OptionSpec("--follow", nil, "continue with new entries until stopped, newest last"),
        ],
        discussion: "Recording begins with the first request and ends half a minute after the last.",
        run: { arguments in
            let limit = try arguments.int("--limit", in: 1...2_000)
            guard arguments.has("--follow") else {
                return try await show(arguments, "calls", [("limit", limit.map { "\($0)" })]) { shown in
                    var table = callTable
                    for call in shown["calls"].list { table.addRow(cells(of: call)) }
                    return table.lines
                }
            }
            try await follow(arguments)
        })

    private static let store = CommandSpec(
        name: "inspect store", summary: "show the state of the store", options: options,
        run: { arguments in
            try await show(arguments, "store") { shown in
                let store = shown["store"]
                guard store.isThere else { return ["no store: states are in memory only"] }
                let writes = max(1, store["writes"].number)
                return [
                    "\(store["type"].text ?? "?"): \(store["writes"].count.counted("write")), "
                        + "\(TopMetricsView.time(store["seconds"].number / writes)) each, \(store["failures"].count) failed",
                    store["failing"].text.map { "the last write failed: \(LogLine.of($0))" },
                ].compactMap { $0 }
            }
        })

    private static let nodes = CommandSpec(
        name: "inspect nodes", summary: "list the nodes that the server sees", options: options,
        run: { arguments in
            try await show(arguments, "nodes") { shown in
                guard let own = shown["node"].text else { return ["the server is not a node of a cluster"] }
                return shown["nodes"].list.compactMap(\.text).map { name in
                    LogLine.of(name) + (name == own ? "  this one, with \(shown["slots"].count.counted("slot"))" : "")
                } + [shown["engineProblem"].text.map { "the coordination store: \(LogLine.of($0))" }].compactMap { $0 }
            }
        })

    // MARK: Output

    private static func query(_ arguments: ParsedArguments) throws(UsageError) -> [(name: String, value: String?)] {
        [
            ("page", try arguments.int("--page", in: 0...1_000_000).map { "\($0)" }),
            ("size", try arguments.int("--size", in: 1...1_000).map { "\($0)" }),
        ]
    }

    private static func show(
        _ arguments: ParsedArguments, _ path: String, _ query: [(name: String, value: String?)] = [],
        _ lines: (LenientJSON) -> [String]
    ) async throws {
        let inspector = try InspectorClient(arguments)
        if arguments.has("--json") {
            return Console.print(LogLine.ofJSON(String(decoding: try await inspector.get(path, query), as: UTF8.self)))
        }
        for line in lines(try await inspector.fetchJSON(path, query)) { Console.print(LogLine.of(line)) }
    }

    private static func footer(_ shown: LenientJSON, _ what: String, all: Int) -> String {
        let (page, pages, found) = (shown["page"].count, shown["pages"].count, shown["found"].count)
        return (found == all ? "" : "\(found) of ") + all.counted(what)
            + (pages > 1 ? "; page \(page) of 0 to \(pages - 1)" : "")
    }

    private static let callTable = TextTable(["CALL", "CONNECTION", "PRINCIPAL", "ACTOR", "METHOD", "TOOK", "ERROR"])

    private static func cells(of call: LenientJSON) -> [String] {
        [
            call["call"].isThere ? "\(call["call"].count)" : "-", "\(call["connection"].count)",
            call["principal"].text ?? "-", call["actor"].text ?? "-", call["method"].text ?? "-",
            call["seconds"].isThere ? TopMetricsView.time(call["seconds"].number) : "-",
            error(of: call),
        ]
    }

    /// Returns the error code with the rejection reason, or with the thrown error and its number in the log.
    private static func error(of call: LenientJSON) -> String {
        guard let code = call["error"].text else { return "" }
        let number = call["errorNumber"].text.map { ", error \($0) in the log" } ?? ""
        let reason = call["refused"].text ?? call["thrown"].text.map { $0 + number } ?? call["reason"].text
        return code + (reason.map { ": \($0)" } ?? "")
    }

    static func lines(ofActor shown: LenientJSON) -> [String] {
        let labels = [("onDemand", "activated on demand"), ("clustered", "of the cluster"), ("persisted", "persisted")]
        var lines = [
            ([shown["name"].text ?? "", shown["type"].text ?? ""] + labels.filter { shown[$0.0].isTrue }.map(\.1))
                .map { LogLine.of($0) }.joined(separator: ", ")
        ]
        for state in shown["states"].list {
            let value = state["value"].isThere ? state["value"].json : "(not loaded, or too long)"
            lines.append(
                "\(state["stream"].text ?? ""), version \(state["version"].count), "
                    + "\(state["subscribers"].count.counted("subscriber")): \(LogLine.of(value))")
        }
        for version in shown["recorded"]["versions"].list {
            let delivered = version["delivered"]
            let reached = delivered.names.map { delivered[$0].count }.reduce(0, +)
            lines.append("")
            lines.append(
                "version \(version["version"].count) of \(version["stream"].text ?? ""): \(version["bytes"].count) bytes, "
                    + "to \(reached.counted("subscriber")), skipped by \(version["skipped"].count)"
                    + (version["behind"].count > 0 ? ", pending for \(version["behind"].count)" : ""))
            for call in version["calls"].list {
                let principal = call["principal"].text.map { LogLine.of($0) } ?? "anonymous"
                lines.append(
                    "  by call \(call["call"].count): \(LogLine.of(call["method"].text ?? "(not recorded)")), "
                        + "\(principal), connection \(call["connection"].count)")
            }
            let more = version["moreCalls"].count
            if more > 0 { lines.append("  and \(more.counted("more call"))") }
            if version["calls"].list.isEmpty { lines.append("  by no recorded client call") }
            for part in ["patch", "value"] where version[part].isThere {
                lines.append("  \(part) \(LogLine.of(version[part].json))")
            }
        }
        return lines
    }

    private static func follow(_ arguments: ParsedArguments) async throws {
        let inspector = try InspectorClient(arguments)
        let isRaw = arguments.has("--json")
        // Later values are unknown, so columns grow as necessary.
        var widths = [8, 10, 12, 20, 28, 8, 0]
        if !isRaw { Console.print(callTable.line(widened: &widths)) }
        var (last, recorded, pauses) = (0, 0, 0)
        while true {
            let shown = try await inspector.fetchJSON("calls", [("after", "\(last)"), ("limit", "2000")])
            let calls = shown["calls"].list
            // Recording has restarted, or the server is another one: the numbers start again.
            let isNew = shown["last"].count < last
            if last > 0, !isNew {
                // The numbers also count other events, which are not shown here.
                let missed = shown["recorded"].count - recorded - calls.count
                if missed > 0 {
                    Console.error("trebuchet inspect: \(missed.counted("call")) arrived too fast to be shown")
                }
                if shown["pauses"].count > pauses {
                    Console.error("trebuchet inspect: too many calls to record all of them")
                }
            }
            (last, recorded, pauses) = (shown["last"].count, shown["recorded"].count, shown["pauses"].count)
            for call in calls.reversed() {
                if isRaw {
                    Console.print(LogLine.ofJSON(call.json))
                } else {
                    let row = TextTable(cells(of: call).map { LogLine.of($0) })
                    Console.print(row.line(widened: &widths))
                }
            }
            try await Task.sleep(for: .seconds(1))
        }
    }
}
