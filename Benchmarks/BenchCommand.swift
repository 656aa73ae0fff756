package import Commands

/// `trebuchet bench`: measures.
package enum BenchCommand {
    package static let spec = CommandSpec(
        name: "bench",
        summary:
            "measure what calls, streams, connections, relays, changes, machines, coders, stores, engines and services cost",
        subcommands: [
            rpc, fanout, idle, soak, relays, delta, qstream, echo, echoServer, bareEcho, BareFanout.command,
            autobahnClient, machines,
            codec, store, transfers, cluster, takeover, spread, services,
        ],
        discussion: """
            Figures depend on the machine and on what else it does: set them beside its own limit, taken in the same
            minute. See Docs/Performance.md.
            """,
        run: { _ in })

    static let seconds = OptionSpec("--seconds", "S", "how long to measure (5)")
    static let connections = OptionSpec("--connections", "N", "connections (64)")
    static let inFlight = OptionSpec("--in-flight", "N", "messages in flight on each (16)")

    /// A benchmark that ends with its figures.
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

    /// - Parameter expected: what an answer has to have.
    static func requests(
        _ arguments: ParsedArguments, _ message: [UInt8], _ url: String, subprotocols: [String] = [],
        expecting expected: String? = nil
    ) async throws -> BenchReport {
        let inFlight = try arguments.int("--in-flight", in: 1...10_000) ?? 16
        let connections = try arguments.int("--connections", in: 1...19_000) ?? 64
        try checkUnderWay(connections, inFlight, message.count)
        let load = RequestLoad(messages: Array(repeating: message, count: inFlight), expecting: expected)
        return try await load.run(
            url: url, subprotocols: subprotocols, connections: connections, seconds: try seconds(arguments))
    }

    /// Bytes under way that a server and its load have memory for.
    private static let mostUnderWay = 256 << 20

    static func checkUnderWay(_ connections: Int, _ inFlight: Int, _ bytes: Int) throws(UsageError) {
        guard bytes * inFlight > mostUnderWay / connections else { return }
        throw UsageError(
            "\(connections) connections with \(inFlight) messages of \(bytes) bytes in flight are more than \(mostUnderWay >> 20) MiB under "
                + "way at once: fewer of --connections, --in-flight or --size")
    }

    private static let idle = measure(
        "idle", "what a connection that says nothing costs the server in memory",
        [
            MeasuredServer.url, MeasuredServer.pid, OptionSpec("--connections", "N", "connections (10000)"),
            OptionSpec("--observe", nil, "each also observes a state"),
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
        "soak", "connections that end in every way there is, and what they leave with the server",
        [
            MeasuredServer.url, MeasuredServer.pid, OptionSpec("--connections", "N", "connections (10000)"),
            OptionSpec("--threads", "N", "that connect at the same time (32)"),
            OptionSpec("--ending", "NAME", "this way to end alone; an unknown name lists them"),
        ],
        discussion:
            "Nothing is left when there are as many descriptors and threads as before, and about as many bytes."
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
        "relays", "a change of a StateRelay, against one AsyncStream per reader",
        [
            OptionSpec("--readers", "N", "readers that wait (1000)"),
            OptionSpec("--rounds", "N", "changes in each of five runs (100)"),
        ]
    ) { arguments in
        let load = RelayLoad(
            readers: try arguments.int("--readers", in: 1...100_000) ?? 1000,
            rounds: try arguments.int("--rounds", in: 1...100_000) ?? 100)
        return await load.run()
    }

    private static let delta = measure(
        "delta", "one changed element of a keyed collection, from server to client, against its size",
        [
            OptionSpec("--count", "N", "elements of the collection (10, 100, 1000 and 10000, by turns)"),
            OptionSpec("--rounds", "N", "changes with each (4000)"),
        ]
    ) { arguments in
        let count = try arguments.int("--count", in: 1...10_000_000)
        let load = DeltaLoad(
            counts: count.map { [$0] } ?? [10, 100, 1_000, 10_000],
            rounds: try arguments.int("--rounds", in: 1...1_000_000) ?? 4000)
        return try await load.run()
    }

    private static let qstream = measure(
        "qstream", "five operators, against one actor for each; single ones, against plain sequences; memory",
        [OptionSpec("--values", "N", "values in each of five runs (100000)")]
    ) { arguments in
        let values = try arguments.int("--values", in: 1...1_000_000_000) ?? 100_000
        var report = await StreamLoad(values: values).run()
        await OperatorLoad(values: values).run(&report)
        return report
    }

    private static let autobahnClient = CommandSpec(
        name: "bench autobahn-client", summary: "echo the cases of the Autobahn suite's fuzzing server",
        options: [
            OptionSpec("--url", "URL", "the fuzzing server (ws://127.0.0.1:9001)"),
            OptionSpec("--agent", "NAME", "what its report calls this client (trebuchet)"),
        ],
        discussion: "It offers compression. The verdicts are the fuzzing server's. See Docs/Conformance.md.",
        run: AutobahnClient.run)

    private static let codec = measure(
        "codec", "a struct of some 200 bytes written as JSON and read, beside Foundation's coders",
        [OptionSpec("--rounds", "N", "of each of five turns (20000)")]
    ) { arguments in
        try CodecLoad(rounds: arguments.int("--rounds", in: 1...10_000_000) ?? 20_000).run()
    }

    private static let machines = measure(
        "machines", "what state machines cost, without a network",
        [
            OptionSpec("--sends", "N", "actions to send (1000000)"),
            OptionSpec("--effects", "N", "effects in flight when their host goes (10000)"),
        ]
    ) { arguments in
        await MachineLoad.run(
            sends: try arguments.int("--sends", in: 1...1_000_000_000) ?? 1_000_000,
            effects: try arguments.int("--effects", in: 1...1_000_000) ?? 10_000)
    }

    private static let store = measure(
        "store", "writes that SQLite acknowledges, and calls that wait for them",
        [
            OptionSpec("--folder", "PATH", "where the files go, and come away again (.)"),
            OptionSpec("--size", "BYTES", "of each value (200)"),
            OptionSpec("--seconds", "S", "how long each figure is measured (2)"),
        ],
        discussion: "fdatasync_per_second is the disk's own limit: one block appended and synced at a time."
    ) { arguments in
        let load = StoreLoad(
            folder: arguments.string("--folder") ?? ".", size: try arguments.int("--size", in: 0...(16 << 20)) ?? 200,
            seconds: try seconds(arguments, or: 2))
        return try await load.run()
    }

    private static let services = measure(
        "services", "what presence, topics and writes to collections cost server and members",
        [
            OptionSpec("--part", "NAME", "presence, topics or collections (all three), or large"),
            OptionSpec("--documents", "N", "of the large collection (100000)"),
            OptionSpec("--members", "N", "members of a room (1000)"),
            OptionSpec("--rate", "N", "presence: patches per second of all members together (100)"),
            OptionSpec("--size", "BYTES", "of a patch or an event (100)"), seconds,
        ],
        discussion: """
            Starts a server in a process of its own, with one reactor. Bytes are those of WebSocket frames. server_cores_percent is
            the processor time of that process against the time that passed.

            --part large fills a collection of a server of its own, and tells for each step how long it took and how long another
            client waited at most for an answer meanwhile.
            """
    ) { arguments in
        let part = arguments.string("--part")
        if let part, !["presence", "topics", "collections", "large"].contains(part) {
            throw UsageError("--part \(part): presence, topics, collections or large")
        }
        var report = BenchReport()
        if part == "large" {
            let documents = try arguments.int("--documents", in: 100...100_000) ?? 100_000
            try await LargeCollectionLoad(documents: documents).run(into: &report)
            return report
        }
        let members = try arguments.int("--members", in: 2...1_000) ?? 1_000
        let rate = try arguments.double("--rate", in: 0.1...10_000) ?? 100
        let size = try arguments.int("--size", in: 40...16_000) ?? 100
        let seconds = try seconds(arguments)
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
