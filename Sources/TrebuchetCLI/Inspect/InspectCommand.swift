import Commands
import Foundation
import Trebuchet

/// `trebuchet inspect`: what a server has and does, from inside.
enum InspectCommand {
    static let spec = CommandSpec(
        name: "inspect",
        summary: "show what a server that runs with --inspector has and does",
        subcommands: [overview, actors, actor, connections, calls, InspectLogs.spec, store, nodes],
        discussion: """
            The server was started with --inspector, which prints the link to it, or with a token of its own at an address that others reach.
            There its certificate has to be one that this machine trusts; SSL_CERT_FILE names a file with more.
              trebuchet inspect actors --url 'http://127.0.0.1:9465/#token=…'
            """,
        run: { _ in })

    private static let options =
        InspectorClient.options + [OptionSpec("--json", nil, "print what the inspector says, as it says it")]
    private static let pages = [
        OptionSpec("--page", "N", "which page of the list, from 0 on (0)"),
        OptionSpec("--size", "N", "how many stand on a page, up to 1000 (100)"),
    ]

    private static let overview = CommandSpec(
        name: "inspect overview", summary: "show the server as a whole, as 'trebuchet top' does all the time",
        options: options,
        run: { arguments in
            try await show(arguments, "overview") { TopFigures.lines(of: $0) }
        })

    private static let actors = CommandSpec(
        name: "inspect actors", summary: "list the actors that stand ready, by name",
        options: options + pages + [
            OptionSpec("--type", "TYPE", "those of this type alone, as Demo.TodoList or TodoList"),
            OptionSpec("--search", "TEXT", "those alone whose names have this in them"),
        ],
        run: { arguments in
            try await show(
                arguments, "actors",
                query(arguments) + [("type", arguments.string("--type")), ("search", arguments.string("--search"))]
            ) { shown in
                var table = TextTable(["ACTOR", "TYPE", "REACTOR", ""])
                for actor in shown["actors"].list {
                    let notes = [("onDemand", "on demand"), ("placed", "of the cluster")].filter { actor[$0.0].isTrue }
                    table.add([
                        actor["name"].text ?? "", actor["type"].text ?? "", actor["reactor"].text ?? "-",
                        (actor["ready"].isTrue ? notes.map(\.1) : ["not loaded"]).joined(separator: ", "),
                    ])
                }
                return table.lines + [foot(shown, "actors", all: shown["all"].count)]
            }
        })

    private static let actor = CommandSpec(
        name: "inspect actor",
        summary:
            "show an actor: its states, and the versions since it was first looked at with the calls that made them",
        operands: "<actor>", operandCount: 1...1,
        options: options + [OptionSpec("--versions", "N", "how many of the newest versions, up to 200 (20)")],
        discussion: """
            The first look begins to note versions; what was before is not known. Half a minute after the last look it ends.
            An actor that does not stand ready is not made.
            """,
        run: { arguments in
            let versions = try arguments.int("--versions", in: 0...200) ?? 20
            let path = "actors/" + InspectorClient.encoded(arguments.operands[0])
            try await show(arguments, path, [("versions", "\(versions)")]) { lines(ofActor: $0) }
        })

    private static let connections = CommandSpec(
        name: "inspect connections", summary: "list the connections, the oldest first", options: options + pages,
        run: { arguments in
            try await show(arguments, "connections", query(arguments)) { shown in
                var table = TextTable([
                    "CONNECTION", "ADDRESS", "PRINCIPAL", "PROTOCOL", "AGE", "STREAMS", "CALLS", "HELD", "LAST ERROR",
                    "",
                ])
                for connection in shown["connections"].list {
                    let notes = [
                        connection["writable"].isTrue ? nil : "reads too slowly",
                        connection["draining"].isTrue ? "told to go" : nil,
                        connection["ofNode"].isTrue ? "of another node" : nil,
                    ]
                    table.add([
                        "\(connection["connection"].count)", connection["address"].text ?? "-",
                        connection["principal"].text ?? "-", "\(connection["protocol"].count)",
                        "\(connection["seconds"].count) s",
                        "\(connection["streams"].count)", "\(connection["calls"].count)",
                        TopFigures.bytes(connection["heldBytes"].number), error(of: connection["lastError"]),
                        notes.compactMap { $0 }.joined(separator: ", "),
                    ])
                }
                return table.lines + [foot(shown, "connections", all: shown["found"].count)]
            }
        })

    private static let calls = CommandSpec(
        name: "inspect calls", summary: "list the calls that have ended since somebody looks, the newest first",
        options: options + [
            OptionSpec("--limit", "N", "how many, up to 2000 (100)"),
            OptionSpec("--follow", nil, "go on with those that end from now on, the newest last, until it is stopped"),
        ],
        discussion: "The first look begins to note calls. Half a minute after the last look it ends.",
        run: { arguments in
            let limit = try arguments.int("--limit", in: 1...2_000)
            guard arguments.has("--follow") else {
                return try await show(arguments, "calls", [("limit", limit.map { "\($0)" })]) { shown in
                    var table = callTable
                    for call in shown["calls"].list { table.add(cells(of: call)) }
                    return table.lines
                }
            }
            try await follow(arguments)
        })

    private static let store = CommandSpec(
        name: "inspect store", summary: "show what keeps persisted states", options: options,
        run: { arguments in
            try await show(arguments, "store") { shown in
                let store = shown["store"]
                guard store.isThere else { return ["nothing is kept: states are in memory alone"] }
                let writes = max(1, store["writes"].number)
                return [
                    "\(store["type"].text ?? "?"): \(store["writes"].count) writes, "
                        + "\(TopFigures.time(store["seconds"].number / writes)) each, \(store["failures"].count) failed",
                    store["failing"].text.map { "the last one failed: \(LogLine.of($0))" },
                ].compactMap { $0 }
            }
        })

    private static let nodes = CommandSpec(
        name: "inspect nodes", summary: "show which nodes of its cluster the server sees", options: options,
        run: { arguments in
            try await show(arguments, "nodes") { shown in
                guard let own = shown["node"].text else { return ["the server is no node of a cluster"] }
                return shown["nodes"].list.compactMap(\.text).map { name in
                    LogLine.of(name) + (name == own ? "  this one, with \(shown["slots"].count) slots" : "")
                } + [shown["engineProblem"].text.map { "the engine: \(LogLine.of($0))" }].compactMap { $0 }
            }
        })

    // MARK: What is printed

    private static func query(_ arguments: ParsedArguments) throws(UsageError) -> [(name: String, value: String?)] {
        [
            ("page", try arguments.int("--page", in: 0...1_000_000).map { "\($0)" }),
            ("size", try arguments.int("--size", in: 1...1_000).map { "\($0)" }),
        ]
    }

    private static func show(
        _ arguments: ParsedArguments, _ path: String, _ query: [(name: String, value: String?)] = [],
        _ lines: (Shown) -> [String]
    ) async throws {
        let inspector = try InspectorClient(arguments)
        if arguments.has("--json") {
            return Console.print(LogLine.ofJSON(String(decoding: try await inspector.get(path, query), as: UTF8.self)))
        }
        for line in lines(try await inspector.shown(path, query)) { Console.print(LogLine.of(line)) }
    }

    private static func foot(_ shown: Shown, _ what: String, all: Int) -> String {
        let (page, pages, found) = (shown["page"].count, shown["pages"].count, shown["found"].count)
        return "\(found == all ? "" : "\(found) of ")\(all) \(what)"
            + (pages > 1 ? "; page \(page) of 0 to \(pages - 1)" : "")
    }

    private static let callTable = TextTable(["CALL", "CONNECTION", "PRINCIPAL", "ACTOR", "METHOD", "TOOK", "ERROR"])

    private static func cells(of call: Shown) -> [String] {
        [
            call["call"].isThere ? "\(call["call"].count)" : "-", "\(call["connection"].count)",
            call["principal"].text ?? "-", call["actor"].text ?? "-", call["method"].text ?? "-",
            call["seconds"].isThere ? TopFigures.time(call["seconds"].number) : "-",
            error(of: call),
        ]
    }

    /// Its code, and why it was refused, or what its method threw and the number that the log has that under.
    private static func error(of call: Shown) -> String {
        guard let code = call["error"].text else { return "" }
        let number = call["errorNumber"].text.map { ", error \($0) in the log" } ?? ""
        let why = call["refused"].text ?? call["thrown"].text.map { $0 + number } ?? call["reason"].text
        return code + (why.map { ": \($0)" } ?? "")
    }

    static func lines(ofActor shown: Shown) -> [String] {
        let notes = [("onDemand", "made on demand"), ("placed", "of the cluster"), ("persisted", "kept in the store")]
        var lines = [
            ([shown["name"].text ?? "", shown["type"].text ?? ""] + notes.filter { shown[$0.0].isTrue }.map(\.1))
                .map { LogLine.of($0) }.joined(separator: ", ")
        ]
        for state in shown["states"].list {
            let value = state["value"].isThere ? state["value"].json : "(not here, or too long)"
            lines.append(
                "\(state["stream"].text ?? ""), version \(state["version"].count), "
                    + "\(state["subscribers"].count) subscribers: \(LogLine.of(value))")
        }
        for version in shown["recorded"]["versions"].list {
            let delivered = version["delivered"]
            let reached = delivered.names.map { delivered[$0].count }.reduce(0, +)
            lines.append("")
            lines.append(
                "version \(version["version"].count) of \(version["stream"].text ?? ""): \(version["bytes"].count) bytes, "
                    + "to \(reached) subscribers, skipped by \(version["skipped"].count)"
                    + (version["behind"].count > 0 ? ", and \(version["behind"].count) have not got it yet" : ""))
            for call in version["calls"].list {
                let who = call["principal"].text.map { LogLine.of($0) } ?? "nobody who is signed in"
                lines.append(
                    "  by call \(call["call"].count): \(LogLine.of(call["method"].text ?? "(long ago)")), "
                        + "\(who), connection \(call["connection"].count)")
            }
            if version["moreCalls"].count > 0 { lines.append("  and \(version["moreCalls"].count) more calls") }
            if version["calls"].list.isEmpty { lines.append("  by no call of a client that was told of") }
            for part in ["patch", "value"] where version[part].isThere {
                lines.append("  \(part) \(LogLine.of(version[part].json))")
            }
        }
        return lines
    }

    private static func follow(_ arguments: ParsedArguments) async throws {
        let inspector = try InspectorClient(arguments)
        let isRaw = arguments.has("--json")
        // What comes later is not known: columns grow as they have to.
        var widths = [8, 10, 12, 20, 28, 8, 0]
        if !isRaw { Console.print(callTable.line(widened: &widths)) }
        var (last, noted, pauses) = (0, 0, 0)
        while true {
            let shown = try await inspector.shown("calls", [("after", "\(last)"), ("limit", "2000")])
            let calls = shown["calls"].list
            // Nobody has looked for a while, or the server is another one: its numbers begin anew.
            let isNew = shown["last"].count < last
            if last > 0, !isNew {
                // Of what else is noted nobody asks here.
                let missed = shown["noted"].count - noted - calls.count
                if missed > 0 { Console.error("trebuchet inspect: \(missed) calls were too quick to be shown") }
                if shown["pauses"].count > pauses {
                    Console.error("trebuchet inspect: there were too many calls to note all of them")
                }
            }
            (last, noted, pauses) = (shown["last"].count, shown["noted"].count, shown["pauses"].count)
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
