import Commands
import Glibc
import Platform
import Synchronization
import Trebuchet
import TrebuchetCluster
import TrebuchetRedis

/// Calls and observes actors of several nodes at a rate while nodes are killed one after the other. Measures how long the
/// actors are unavailable, and the effects on callers and observers.
final class TakeoverLoad: Sendable {
    /// The measurements of all meters.
    private struct Meters {
        /// The time since when a meter has answered no call sent after the kill, by meter; nil once it has.
        var silentSince: [Int: UInt64] = [:]
        var silence = Histogram()
        var answers = 0
        var latency = Histogram()
        var underWay: Set<Int> = []
        /// Plain calls that were in flight at a kill.
        var cut: Set<Int> = []
        var unknownOfCut = 0
        var otherErrors: [String: Int] = [:]
        var idempotentErrors: [String: Int] = [:]
        var values = 0
        var gaps = 0
        var endedStreams = 0
        var isOver = false
    }

    private let meters = Mutex(Meters())
    private let nodes: Int
    private let rate: Double
    private let kills: Int
    private let actors: Int
    private let connections: Int

    init(nodes: Int, rate: Double, kills: Int, actors: Int, connections: Int) {
        (self.nodes, self.rate, self.kills, self.actors) = (nodes, rate, kills, actors)
        self.connections = connections
    }

    func run() async throws -> BenchReport {
        let redis = try await RedisProcess()
        defer { redis.stop() }
        let url = "redis://127.0.0.1:\(redis.port)"
        let engine = try RedisEngine(url: url)
        func start(_ name: String) throws -> MeasuredServer {
            try MeasuredServer(["--bench", "--cluster", url, "--node", name])
        }
        var servers: [(name: String, server: MeasuredServer)] = []
        defer { for (_, server) in servers { server.stop() } }
        for number in 0..<nodes { servers.append(("n\(number)", try start("n\(number)"))) }
        try await Self.settle(engine, nodes)

        // The port of a node that is not killed, since clients of a killed node also lose their connection.
        let port = servers[0].server.url.split(separator: ":").last.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
        var clients: [TrebuchetClient] = []
        for _ in 0..<connections {
            let client = TrebuchetClient(transport: .webSocket(port: port))
            try await client.connect()
            clients.append(client)
        }
        let actors = try (0..<self.actors).map { try clients[$0 % connections].resolve(Meter.self, id: "meters/\($0)") }
        for actor in actors { _ = try await actor.addOnce(1) }
        let watching = actors.map { actor in Task { await self.watch(actor) } }
        let calling = Task { await self.call(actors) }
        try await Task.sleep(for: .seconds(2))
        for number in 0..<kills {
            let victim = servers.remove(at: 1)
            let owner = try await engine.nodes().first { $0.node.name == victim.name }?.node
            var silent: [Int] = []
            for meter in 0..<self.actors
            where try await engine.owner(of: ClusterSlot(of: "meters/\(meter)"))?.lease.owner == owner {
                silent.append(meter)
            }
            victim.server.stop()
            meters.withLock { meters in
                for meter in silent { meters.silentSince[meter] = MonotonicClock.now }
                meters.cut.formUnion(meters.underWay)
            }
            let deadline = MonotonicClock.now &+ 30_000_000_000
            while meters.withLock({ !$0.silentSince.isEmpty }), MonotonicClock.now < deadline {
                try await Task.sleep(for: .milliseconds(5))
            }
            let name = "n\(nodes + number)"
            servers.append((name, try start(name)))
            try await Self.settle(engine, nodes)
            try await Task.sleep(for: .seconds(1))
        }
        meters.withLock { $0.isOver = true }
        await calling.value
        let report = report()
        for task in watching { task.cancel() }
        for client in clients { await client.close() }
        await engine.close()
        return report
    }

    private func report() -> BenchReport {
        let end = meters.withLock { $0 }
        var report = BenchReport()
        report.add("nodes", nodes)
        report.add("actors", actors)
        report.add("connections", connections)
        report.add("calls_per_second", rate)
        report.add("kills", kills)
        report.add("answers", end.answers)
        report.add(end.latency)
        report.add("taken_over", end.silence.count)
        report.add("not_taken_over", end.silentSince.count)
        report.add("silence_p50_ms", end.silence.microseconds(0.5) / 1_000)
        report.add("silence_max_ms", end.silence.microseconds(1) / 1_000)
        report.add("plain_under_way_unknown", end.unknownOfCut)
        report.add("plain_other_errors", end.otherErrors.values.reduce(0, +))
        report.add("idempotent_errors", end.idempotentErrors.values.reduce(0, +))
        for (code, count) in end.otherErrors.merging(end.idempotentErrors, uniquingKeysWith: +).sorted(by: {
            $0.key < $1.key
        }) {
            report.add("errors_\(code)", count)
        }
        report.add("versions_seen", end.values)
        report.add("versions_missed", end.gaps)
        report.add("streams_ended", end.endedStreams)
        return report
    }

    /// Waits until `count` nodes own all slots in about equal parts.
    static func settle(_ engine: RedisEngine, _ count: Int) async throws {
        let deadline = MonotonicClock.now &+ 30_000_000_000
        while MonotonicClock.now < deadline {
            var owned: [ClusterNode: Int] = [:]
            for slot in ClusterSlot.all {
                if let holder = try await engine.owner(of: slot) { owned[holder.lease.owner, default: 0] += 1 }
            }
            let least = ClusterSlot.count / count * 7 / 10
            if owned.values.reduce(0, +) == ClusterSlot.count, owned.count == count, owned.values.min() ?? 0 > least {
                return
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        throw UsageError("the nodes did not distribute the slots within 30 seconds")
    }

    // MARK: Clients

    private func watch(_ actor: Meter) async {
        let stream = await actor.observeCount()
        var last: Int?
        for await count in stream {
            let gap = last.map { count != $0 + 1 } ?? false
            last = count
            meters.withLock { meters in
                meters.values += 1
                if gap { meters.gaps += 1 }
            }
        }
        if !Task.isCancelled { meters.withLock { $0.endedStreams += 1 } }
    }

    /// Calls at the rate, regardless of earlier calls; every second call is `@Idempotent`.
    private func call(_ actors: [Meter]) async {
        await withTaskGroup(of: Void.self) { group in
            let start = MonotonicClock.now
            var made = 0
            while !meters.withLock({ $0.isOver }) {
                let due = Int(MonotonicClock.seconds(since: start) * rate)
                while made < due {
                    let (number, meter) = (made, made % actors.count)
                    // Independent of the parity of the meter, so that each meter receives both kinds.
                    let isPlain = made / actors.count % 2 == 0
                    let actor = actors[meter]
                    group.addTask { [self] in await call(number, meter, actor, isPlain: isPlain) }
                    made += 1
                }
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    private func call(_ number: Int, _ meter: Int, _ actor: Meter, isPlain: Bool) async {
        let start = MonotonicClock.now
        if isPlain { meters.withLock { _ = $0.underWay.insert(number) } }
        do {
            _ = isPlain ? try await actor.add(1) : try await actor.addOnce(1)
            meters.withLock { meters in
                meters.underWay.remove(number)
                meters.answers += 1
                meters.latency.add(MonotonicClock.now &- start)
                // A call sent earlier may have been answered before the kill.
                if let since = meters.silentSince[meter], start > since {
                    meters.silence.add(MonotonicClock.now &- since)
                    meters.silentSince[meter] = nil
                }
            }
        } catch {
            meters.withLock { meters in
                meters.underWay.remove(number)
                let code = (error as? TrebuchetError).map { "\($0.code)" } ?? "\(error)"
                if !isPlain {
                    meters.idempotentErrors[code, default: 0] += 1
                } else if meters.cut.contains(number), code == "unknownOutcome" {
                    meters.unknownOfCut += 1
                } else {
                    meters.otherErrors[code, default: 0] += 1
                }
            }
        }
    }
}

extension BenchCommand {
    static let takeover = measure(
        "takeover", "calls while nodes are killed",
        [
            OptionSpec("--nodes", "N", "nodes of the cluster (3)"),
            OptionSpec("--rate", "N", "calls per second (1000)"),
            OptionSpec("--actors", "N", "actors to call and observe in turn (100)"),
            OptionSpec("--connections", "N", "client connections that share the actors (8)"),
            OptionSpec("--kills", "N", "nodes to kill, each after the previous one was replaced (5)"),
        ],
        discussion: """
            Starts a redis-server and node processes with a lease of 5 s, and calls actors through a node that is not
            killed. A connection allows 1,024 in-flight calls: with few connections, calls that wait for the next owner exceed that
            (errors_rateLimited). silence_… is the time from a kill until actors of the killed node respond to later calls;
            plain_under_way_unknown counts calls without @Idempotent in flight at a kill that ended with unknownOutcome.
            """
    ) { arguments in
        let load = TakeoverLoad(
            nodes: try arguments.int("--nodes", in: 2...9) ?? 3,
            rate: try arguments.double("--rate", in: 1...10_000) ?? 1_000,
            kills: try arguments.int("--kills", in: 1...100) ?? 5,
            actors: try arguments.int("--actors", in: 1...10_000) ?? 100,
            connections: try arguments.int("--connections", in: 1...1_000) ?? 8)
        return try await load.run()
    }
}
