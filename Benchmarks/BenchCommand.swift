package import Commands
import Foundation

/// `trebuchet bench`: the benchmarks.
package enum BenchCommand {
    package static let spec = CommandSpec(
        name: "bench",
        summary:
            "measure calls, streams, connections, relays, deltas, state machines, coders, stores, clusters and services",
        subcommands: [
            rpc, fanout, idle, soak, relays, delta, qstream, echo, echoServer, bareEcho, BareFanout.command,
            autobahnClient, machines,
            codec, store, transfers, cluster, takeover, spread, services, ServicesServer.command,
        ],
        discussion: """
            Results depend on the machine and its load: compare them with the machine's own limit, measured in the same
            minute. See Docs/Internals/Performance.md.
            """,
        run: { _ in })

    static let seconds = OptionSpec("--seconds", "S", "duration of the measurement (5)")
    static let connections = OptionSpec("--connections", "N", "connections (64)")
    static let inFlight = OptionSpec("--in-flight", "N", "messages in flight per connection (16)")

    /// Returns the command of a benchmark that prints a report.
    static func measure(
        _ name: String, _ summary: String, _ options: [OptionSpec], discussion: String = "",
        run: @escaping @Sendable (ParsedArguments) async throws -> BenchReport
    ) -> CommandSpec {
        CommandSpec(
            name: "bench " + name, summary: summary,
            options: options + [OptionSpec("--json", nil, "print one JSON object instead of a table")],
            discussion: discussion, run: { try await run($0).print(asJSON: $0.has("--json")) })
    }

    static func seconds(_ arguments: ParsedArguments, or least: Double = 5) throws -> Double {
        try arguments.double("--seconds", in: 0.1...3600) ?? least
    }

    /// - Parameter expected: text that each response must contain.
    static func requests(
        _ arguments: ParsedArguments, _ message: [UInt8], _ url: String, subprotocols: [String] = [],
        expecting expected: String? = nil
    ) async throws -> BenchReport {
        let inFlight = try arguments.int("--in-flight", in: 1...10_000) ?? 16
        let connections = try arguments.int("--connections", in: 1...19_000) ?? 64
        try checkInFlight(connections, inFlight, message.count)
        let load = RequestLoad(messages: Array(repeating: message, count: inFlight), expecting: expected)
        return try await load.run(
            url: url, subprotocols: subprotocols, connections: connections, seconds: try seconds(arguments))
    }

    /// The maximum number of bytes in flight, for which server and load have memory.
    private static let maximumInFlight = 256 << 20

    static func checkInFlight(_ connections: Int, _ inFlight: Int, _ bytes: Int) throws(UsageError) {
        guard bytes * inFlight > maximumInFlight / connections else { return }
        throw UsageError(
            "\(connections) connections with \(inFlight) messages of \(bytes) bytes in flight exceed \(maximumInFlight >> 20) MiB in "
                + "total; reduce --connections, --in-flight or --size")
    }

    private static let idle = measure(
        "idle", "server memory per idle connection",
        [
            MeasuredServer.url, MeasuredServer.pid, OptionSpec("--connections", "N", "connections (10000)"),
            OptionSpec("--observe", nil, "each connection also observes a state"),
        ]
    ) { arguments in
        let server = try MeasuredServer(arguments)
        defer { server.stop() }
        return try await IdleLoad.run(
            url: server.url, process: try server.knownProcess(),
            connections: try arguments.int("--connections", in: 1...19_000) ?? 10_000,
            observing: arguments.has("--observe"))
    }

    private static let soak = measure(
        "soak", "resources of the server after connections end in all ways",
        [
            MeasuredServer.url, MeasuredServer.pid, OptionSpec("--connections", "N", "connections (10000)"),
            OptionSpec("--threads", "N", "concurrent connections (32)"),
            OptionSpec("--ending", "NAME", "only this way to end; an unknown name lists them"),
        ],
        discussion:
            "Descriptors and threads must be as many as before, and memory about the same."
    ) { arguments in
        var load = SoakLoad(
            connections: try arguments.int("--connections", in: 1...10_000_000) ?? 10_000,
            threads: try arguments.int("--threads", in: 1...1_000) ?? 32)
        if let name = arguments.string("--ending") {
            guard let ending = SoakEnding(rawValue: name) else {
                let names = SoakEnding.allCases.map(\.rawValue).joined(separator: " ")
                throw UsageError("--ending \(name): one of \(names)")
            }
            load.endings = [ending]
        }
        let server = try MeasuredServer(arguments, ["--compression"])
        defer { server.stop() }
        return try await load.run(url: server.url, process: try server.knownProcess())
    }

    private static let relays = measure(
        "relays", "a change of a StateRelay, compared with one AsyncStream per reader",
        [
            OptionSpec("--readers", "N", "waiting readers (1000)"),
            OptionSpec("--rounds", "N", "changes in each of five runs (100)"),
        ]
    ) { arguments in
        let load = RelayLoad(
            readers: try arguments.int("--readers", in: 1...100_000) ?? 1000,
            rounds: try arguments.int("--rounds", in: 1...100_000) ?? 100)
        return await load.run()
    }

    private static let delta = measure(
        "delta", "one changed element of a keyed collection, from server to client, by collection size",
        [
            OptionSpec("--count", "N", "elements of the collection (10, 100, 1000 and 10000, in turn)"),
            OptionSpec("--rounds", "N", "changes per size (4000)"),
        ]
    ) { arguments in
        let count = try arguments.int("--count", in: 1...10_000_000)
        let load = DeltaLoad(
            counts: count.map { [$0] } ?? [10, 100, 1_000, 10_000],
            rounds: try arguments.int("--rounds", in: 1...1_000_000) ?? 4000)
        return try await load.run()
    }

    private static let qstream = measure(
        "qstream",
        "five operators compared with one actor each; single operators compared with plain sequences; memory",
        [OptionSpec("--values", "N", "values in each of five runs (100000)")]
    ) { arguments in
        let values = try arguments.int("--values", in: 1...1_000_000_000) ?? 100_000
        var report = await StreamLoad(values: values).run()
        await OperatorLoad(values: values).run(&report)
        return report
    }

    private static let autobahnClient = CommandSpec(
        name: "bench autobahn-client", summary: "echo the cases of the fuzzing server of the Autobahn suite",
        options: [
            OptionSpec("--url", "URL", "the fuzzing server (ws://127.0.0.1:9001)"),
            OptionSpec("--agent", "NAME", "name of this client in the report (trebuchet)"),
        ],
        discussion: "Offers compression. The fuzzing server writes the verdicts. See Docs/Reference/Conformance.md.",
        run: AutobahnClient.run)

    private static let codec = measure(
        "codec", "JSON coding of a struct of about 200 bytes, compared with Foundation's coders",
        [OptionSpec("--rounds", "N", "rounds in each of five runs (20000)")]
    ) { arguments in
        try CodecLoad(rounds: arguments.int("--rounds", in: 1...10_000_000) ?? 20_000).run()
    }

    private static let machines = measure(
        "machines", "state machines, without a network",
        [
            OptionSpec("--sends", "N", "actions to send (1000000)"),
            OptionSpec("--effects", "N", "effects in flight when their host is released (10000)"),
        ]
    ) { arguments in
        await MachineLoad.run(
            sends: try arguments.int("--sends", in: 1...1_000_000_000) ?? 1_000_000,
            effects: try arguments.int("--effects", in: 1...1_000_000) ?? 10_000)
    }

    private static let store = measure(
        "store", "acknowledged writes to SQLite, and calls that wait for them",
        [
            OptionSpec("--folder", "PATH", "folder of the temporary files (.)"),
            OptionSpec("--size", "BYTES", "size of each value (200)"),
            OptionSpec("--seconds", "S", "duration of each measurement (2)"),
        ],
        discussion: "fdatasync_per_second is the limit of the disk: one block appended and synced at a time."
    ) { arguments in
        let load = StoreLoad(
            folder: arguments.string("--folder") ?? ".", size: try arguments.int("--size", in: 0...(16 << 20)) ?? 200,
            seconds: try seconds(arguments, or: 2))
        return try await load.run()
    }

    private static let services = measure(
        "services", "cost of presence, topics and collection writes for server and members",
        [
            OptionSpec("--part", "NAME", "presence, topics, collections, saturated, fanout or large (the first three)"),
            OptionSpec("--documents", "N", "documents of the large collection (100000)"),
            OptionSpec("--members", "N", "members of a room (1000)"),
            OptionSpec("--rate", "N", "presence: patches per second of all members (100)"),
            OptionSpec("--size", "BYTES", "size of a patch or an event (100)"),
            OptionSpec("--data", "FOLDER", "saturated: folder of the files (that of temporary files)"), seconds,
        ],
        discussion: """
            Starts a server in a separate process with one reactor. Bytes are those of WebSocket frames. server_cores_percent is
            the processor time of that process divided by the elapsed time.

            --part saturated sends durable writes over 64 connections, 8 at a time each, to a separate server with one reactor and
            1,000 open queries that they do not affect; single sends one at a time. The baselines are the same load on a
            persisted actor of that server (bank.transfer), and SQLite alone, as in 'bench transfers'.

            --part fanout compares a room with fan-outs, server and load on separate cores: the events of one member, as fast as
            the server delivers them, with the state of 'bench fanout' and with a bare fan-out in C; the paced presence of all
            members with a bare fan-out of as many messages of the same size.

            --part large fills a collection of a separate server, and reports for each step its duration and the longest time that
            another client waited for a response meanwhile.
            """
    ) { arguments in
        let part = arguments.string("--part")
        if let part, !["presence", "topics", "collections", "saturated", "fanout", "large"].contains(part) {
            throw UsageError("--part \(part): presence, topics, collections, saturated, fanout or large")
        }
        var report = BenchReport()
        if part == "large" {
            let documents = try arguments.int("--documents", in: 100...100_000) ?? 100_000
            try await LargeCollectionLoad(documents: documents).run(into: &report)
            return report
        }
        if part == "saturated" {
            let folder = arguments.string("--data") ?? FileManager.default.temporaryDirectory.path
            let load = SaturatedCollectionLoad(folder: folder, seconds: try seconds(arguments))
            try await load.run(into: &report)
            return report
        }
        let members = try arguments.int("--members", in: 2...1_000) ?? 1_000
        let rate = try arguments.double("--rate", in: 0.1...10_000) ?? 100
        let size = try arguments.int("--size", in: 40...16_000) ?? 100
        let seconds = try seconds(arguments)
        if part == "fanout" {
            try await RoomFanoutLoad(members: members, rate: rate, size: size, seconds: seconds).run(into: &report)
            return report
        }
        let server = try MeasuredServer(["--services", "rooms,collections"])
        defer { server.stop() }
        if part ?? "presence" == "presence" {
            let load = RoomLoad(.presence, rate: rate, bytes: size)
            try await load.run(server, members: members, seconds: seconds, into: &report)
        }
        if part ?? "topics" == "topics" {
            let load = RoomLoad(.topic, rate: min(rate, 40), bytes: size)
            try await load.run(server, members: members, seconds: seconds, into: &report)
        }
        if part ?? "collections" == "collections" {
            let load = CollectionLoad(documents: 1_000, seconds: seconds)
            for queries in [10, 100, 900] { try await load.run(server, queries: queries, into: &report) }
        }
        return report
    }
}
