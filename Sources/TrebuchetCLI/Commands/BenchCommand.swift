import Glibc
import Trebuchet

/// `trebuchet bench`: measures.
enum BenchCommand {
    static let spec = CommandSpec(
        name: "bench",
        summary: "measure what calls, streams, connections, relays, changes, machines, stores and services cost",
        subcommands: [
            rpc, fanout, idle, soak, relays, delta, qstream, echo, echoServer, autobahnClient, machines, store,
            services,
        ],
        discussion: """
            Figures depend on the machine and on what else it does: set them beside its own limit, taken in the same
            minute. See Docs/Performance.md.
            """,
        run: { _ in })

    private static let json = OptionSpec("--json", nil, "print one JSON object instead of a table")
    private static let seconds = OptionSpec("--seconds", "S", "how long to measure (5)")
    private static let connections = OptionSpec("--connections", "N", "connections (64)")
    private static let inFlight = OptionSpec("--in-flight", "N", "messages in flight on each (16)")
    private static let url = OptionSpec("--url", "URL", "a running server; without it one is started in this process")

    private static let rpc = CommandSpec(
        name: "bench rpc", summary: "typed calls: counter.add(_:)",
        options: [
            url,
            OptionSpec("--size", "BYTES", "call board.length(of:) with a string of this size; needs 'serve --bench'"),
            OptionSpec("--uuid", nil, "call board.same(_:) with a UUID, which it gives back; needs 'serve --bench'"),
            connections, inFlight, seconds, json,
        ],
        run: { arguments in
            let server = try await LocalServer(arguments)
            var (actor, target, argument) = ("counter", "add(_:)", "1")
            if let size = try arguments.int("--size", in: 0...(1 << 20) - 200) {
                (actor, target, argument) = ("board", "length(of:)", "\"" + String(repeating: "x", count: size) + "\"")
            } else if arguments.has("--uuid") {
                (actor, target, argument) = ("board", "same(_:)", "\"0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C\"")
            }
            let call =
                #"{"type":"invocation","payload":{"callID":"a1","actorID":"\#(actor)","#
                + #""targetIdentifier":"\#(target)","arguments":[\#(argument)]}}"#
            try await requests(arguments, Array(call.utf8), server.url, subprotocol: "trebuchet.v3")
        })

    private static let echo = CommandSpec(
        name: "bench echo", summary: "WebSocket echo, against bench echo-server",
        options: [
            OptionSpec("--url", "URL", "the echo server (ws://127.0.0.1:9001)"),
            OptionSpec("--size", "BYTES", "of each message (64)"), connections, inFlight, seconds, json,
        ],
        run: { arguments in
            let size = try arguments.int("--size", in: 1...(16 << 20)) ?? 64
            let url = arguments.string("--url") ?? "ws://127.0.0.1:9001"
            try await requests(arguments, Array(repeating: 0x61, count: size), url, subprotocol: nil)
        })

    private static let fanout = CommandSpec(
        name: "bench fanout", summary: "one state to many subscribers",
        options: [
            OptionSpec(
                "--url", "URL", "a server started with 'serve --bench'; without it one is started in this process"),
            OptionSpec("--subscribers", "N", "subscribers (1000)"),
            OptionSpec("--rate", "N", "updates per second (500)"),
            OptionSpec("--size", "BYTES", "of the encoded state (200)"),
            OptionSpec("--whole", nil, "change all of the state each time, so that it is sent as a whole"),
            OptionSpec("--stalled", "N", "so many of the subscribers read nothing while it is measured (0)"),
            OptionSpec("--pid", "PID", "the server's process, to show its memory"), seconds, json,
        ],
        run: { arguments in
            let server = try await LocalServer(arguments)
            let subscribers = try arguments.int("--subscribers", in: 1...19_000) ?? 1000
            let load = FanoutLoad(
                rate: try arguments.double("--rate", in: 0.1...100_000) ?? 500,
                target: arguments.has("--whole") ? "rewrite(stamp:)" : "publish(stamp:)")
            try await load.run(
                url: server.url, subscribers: subscribers,
                stalled: try arguments.int("--stalled", in: 0...subscribers) ?? 0,
                pid: try arguments.int("--pid", in: 1...Int(Int32.max)).map { Int32($0) },
                size: try arguments.int("--size", in: 1...(1 << 20)) ?? 200,
                seconds: try arguments.double("--seconds", in: 0.1...3600) ?? 5
            ).print(asJSON: arguments.has("--json"))
        })

    private static let idle = CommandSpec(
        name: "bench idle", summary: "what a connection that says nothing costs the server in memory",
        options: [
            OptionSpec(
                "--url", "URL", "a running server, with --pid; without it one is started in a process of its own"),
            OptionSpec("--pid", "PID", "the process of that server"),
            OptionSpec("--connections", "N", "connections (10000)"),
            OptionSpec("--observe", nil, "each also observes a state"), json,
        ],
        run: { arguments in
            let connections = try arguments.int("--connections", in: 1...19_000) ?? 10_000
            let observing = arguments.has("--observe")
            let report: BenchReport
            if let url = arguments.string("--url") {
                guard let pid = try arguments.int("--pid", in: 1...Int(Int32.max)) else {
                    throw UsageError("--url needs --pid, to read the server's memory")
                }
                report = try await IdleLoad.run(
                    url: url, pid: Int32(pid), connections: connections, observing: observing)
            } else {
                let server = try ChildServer()
                defer { server.stop() }
                report = try await IdleLoad.run(
                    url: server.url, pid: server.pid, connections: connections, observing: observing)
            }
            report.print(asJSON: arguments.has("--json"))
        })

    private static let soak = CommandSpec(
        name: "bench soak", summary: "connections that end in every way there is, and what they leave with the server",
        options: [
            OptionSpec(
                "--url", "URL", "a running server, with --pid; without it one is started in a process of its own"),
            OptionSpec("--pid", "PID", "the process of that server"),
            OptionSpec("--connections", "N", "connections (10000)"),
            OptionSpec("--threads", "N", "that connect at the same time (32)"),
            OptionSpec("--ending", "NAME", "this way to end alone; an unknown name lists them"), json,
        ],
        discussion:
            "Nothing is left when there are as many descriptors and threads as before, and about as many bytes.",
        run: { arguments in
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
            let report: BenchReport
            if let url = arguments.string("--url") {
                guard let pid = try arguments.int("--pid", in: 1...Int(Int32.max)) else {
                    throw UsageError("--url needs --pid, to look at the server")
                }
                report = try await load.run(url: url, pid: Int32(pid))
            } else {
                let server = try ChildServer(["--compression"])
                defer { server.stop() }
                report = try await load.run(url: server.url, pid: server.pid)
            }
            report.print(asJSON: arguments.has("--json"))
        })

    private static let relays = CommandSpec(
        name: "bench relays", summary: "a change of a StateRelay, against one AsyncStream per reader",
        options: [
            OptionSpec("--readers", "N", "readers that wait (1000)"),
            OptionSpec("--rounds", "N", "changes in each of five runs (100)"), json,
        ],
        run: { arguments in
            let load = RelayLoad(
                readers: try arguments.int("--readers", in: 1...100_000) ?? 1000,
                rounds: try arguments.int("--rounds", in: 1...100_000) ?? 100)
            await load.run().print(asJSON: arguments.has("--json"))
        })

    private static let delta = CommandSpec(
        name: "bench delta",
        summary: "one changed element of a keyed collection, from server to client, against its size",
        options: [
            OptionSpec(
                "--count", "N", "elements of the collection (10, 100, 1000 and 10000, by turns)"),
            OptionSpec("--rounds", "N", "changes with each (4000)"), json,
        ],
        run: { arguments in
            let count = try arguments.int("--count", in: 1...10_000_000)
            let load = DeltaLoad(
                counts: count.map { [$0] } ?? [10, 100, 1_000, 10_000],
                rounds: try arguments.int("--rounds", in: 1...1_000_000) ?? 4000)
            try await load.run().print(asJSON: arguments.has("--json"))
        })

    private static let qstream = CommandSpec(
        name: "bench qstream", summary: "a chain of five operators, against one actor for each operator",
        options: [OptionSpec("--values", "N", "values in each of five runs (100000)"), json],
        run: { arguments in
            let load = StreamLoad(values: try arguments.int("--values", in: 1...1_000_000_000) ?? 100_000)
            await load.run().print(asJSON: arguments.has("--json"))
        })

    private static let echoServer = CommandSpec(
        name: "bench echo-server", summary: "a bare WebSocket echo, until SIGINT or SIGTERM",
        options: [
            OptionSpec("--host", "HOST", "address to listen on (127.0.0.1)"),
            OptionSpec("--port", "PORT", "port to listen on; 0 takes a free one (9001)"),
            OptionSpec("--reactors", "N", "threads that serve (1)"),
            OptionSpec("--tls-cert", "FILE", "serve wss with this certificate chain (PEM)"),
            OptionSpec("--tls-key", "FILE", "its private key (PEM)"),
            OptionSpec("--compression", nil, "compress all messages with clients that offer it"),
        ],
        run: EchoServer.run)

    private static let autobahnClient = CommandSpec(
        name: "bench autobahn-client", summary: "echo the cases of the Autobahn suite's fuzzing server",
        options: [
            OptionSpec("--url", "URL", "the fuzzing server (ws://127.0.0.1:9001)"),
            OptionSpec("--agent", "NAME", "what its report calls this client (trebuchet)"),
        ],
        discussion: "It offers compression. The verdicts are the fuzzing server's. See Docs/Conformance.md.",
        run: AutobahnClient.run)

    private static let machines = CommandSpec(
        name: "bench machines", summary: "what state machines cost, without a network",
        options: [
            OptionSpec("--sends", "N", "actions to send (1000000)"),
            OptionSpec("--effects", "N", "effects in flight when their host goes (10000)"), json,
        ],
        run: { arguments in
            await MachineLoad.run(
                sends: try arguments.int("--sends", in: 1...1_000_000_000) ?? 1_000_000,
                effects: try arguments.int("--effects", in: 1...1_000_000) ?? 10_000
            ).print(asJSON: arguments.has("--json"))
        })

    private static let store = CommandSpec(
        name: "bench store", summary: "writes that SQLite acknowledges, and calls that wait for them",
        options: [
            OptionSpec("--folder", "PATH", "where the files go, and come away again (.)"),
            OptionSpec("--size", "BYTES", "of each value (200)"),
            OptionSpec("--seconds", "S", "how long each figure is measured (2)"), json,
        ],
        discussion: "fdatasync_per_second is the disk's own limit: one block appended and synced at a time.",
        run: { arguments in
            let load = StoreLoad(
                folder: arguments.string("--folder") ?? ".",
                size: try arguments.int("--size", in: 0...(16 << 20)) ?? 200,
                seconds: try arguments.double("--seconds", in: 0.1...3600) ?? 2)
            try await load.run().print(asJSON: arguments.has("--json"))
        })

    private static let services = CommandSpec(
        name: "bench services", summary: "what presence, topics and writes to collections cost server and members",
        options: [
            OptionSpec("--part", "NAME", "presence, topics or collections (all three), or large"),
            OptionSpec("--documents", "N", "of the large collection (100000)"),
            OptionSpec("--members", "N", "members of a room (1000)"),
            OptionSpec("--rate", "N", "presence: patches per second of all members together (100)"),
            OptionSpec("--size", "BYTES", "of a patch or an event (100)"), seconds, json,
        ],
        discussion: """
            Starts a server in a process of its own, with one reactor. Bytes are those of WebSocket frames. server_cores_percent is
            the processor time of that process against the time that passed.

            --part large fills a collection of a server of its own, and tells for each step how long it took and how long another
            client waited at most for an answer meanwhile.
            """,
        run: { arguments in
            let part = arguments.string("--part")
            if let part, !["presence", "topics", "collections", "large"].contains(part) {
                throw UsageError("--part \(part): presence, topics, collections or large")
            }
            var report = BenchReport()
            if part == "large" {
                let documents = try arguments.int("--documents", in: 100...100_000) ?? 100_000
                try await LargeCollectionLoad(documents: documents).run(into: &report)
                return report.print(asJSON: arguments.has("--json"))
            }
            let members = try arguments.int("--members", in: 2...1_000) ?? 1_000
            let rate = try arguments.double("--rate", in: 0.1...10_000) ?? 100
            let size = try arguments.int("--size", in: 40...16_000) ?? 100
            let seconds = try arguments.double("--seconds", in: 0.1...3600) ?? 5
            let server = try ChildServer(services: "rooms,collections")
            defer { server.stop() }
            if part ?? "presence" == "presence" {
                let load = PresenceLoad(rate: rate, bytes: size)
                try await load.run(server, members: members, seconds: seconds, into: &report)
            }
            if part ?? "topics" == "topics" {
                let load = TopicLoad(rate: min(rate, 40), bytes: size)
                try await load.run(server, members: members, seconds: seconds, into: &report)
            }
            if part ?? "collections" == "collections" {
                let load = CollectionLoad(documents: 1_000, seconds: seconds)
                for queries in [10, 100, 900] { try await load.run(server, queries: queries, into: &report) }
            }
            report.print(asJSON: arguments.has("--json"))
        })

    private static func requests(
        _ arguments: ParsedArguments, _ message: [UInt8], _ url: String, subprotocol: String?
    ) async throws {
        let load = RequestLoad(message: message, inFlight: try arguments.int("--in-flight", in: 1...10_000) ?? 16)
        try await load.run(
            url: url, subprotocol: subprotocol, connections: try arguments.int("--connections", in: 1...19_000) ?? 64,
            seconds: try arguments.double("--seconds", in: 0.1...3600) ?? 5
        ).print(asJSON: arguments.has("--json"))
    }
}

/// The server that a benchmark talks to: one that runs, or one of its own in this process, with one reactor.
private struct LocalServer {
    let url: String
    private let server: TrebuchetServer?

    init(_ arguments: ParsedArguments) async throws {
        if let url = arguments.string("--url") {
            self.url = url
            server = nil
            return
        }
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1)
        await ServeCommand.expose(on: server, withBoard: true)
        url = "ws://\(try await server.start())"
        self.server = server
    }
}
