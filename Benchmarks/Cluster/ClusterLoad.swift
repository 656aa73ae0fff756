import Commands
import Platform
import TrebuchetCluster
import TrebuchetRedis

/// Measures fenced appends through a `RedisEngine`, with redis-benchmark running the same script as the baseline.
struct ClusterLoad {
    let size: Int
    let inFlight: Int
    let seconds: Double
    private let rounds = 3

    func run() async throws -> BenchReport {
        let server = try await RedisProcess()
        defer { server.stop() }
        let client = RedisClient(try RedisProcess.target(server.port))
        defer { client.close() }
        var limits = ClusterEngineLimits()
        limits.entriesPerLog = .max
        let engine = try RedisEngine(url: "redis://127.0.0.1:\(server.port)", limits: limits)

        var report = BenchReport()
        report.add("value_bytes", size)
        report.add("in_flight", inFlight)
        var (ours, theirs, ratios): ([Double], [Double], [Double]) = ([], [], [])
        for _ in 0..<rounds {
            _ = try await client.send(RedisCommand("FLUSHALL"))
            ours.append(try await appends(engine, writers: inFlight).rate)
            _ = try await client.send(RedisCommand("FLUSHALL"))
            theirs.append(try await benchmark(server, client, requests: Int(ours.last! * seconds)))
            ratios.append(ours.last! / theirs.last!)
        }
        report.add("appends_per_second", ours.median)
        report.add("redis_benchmark_per_second", theirs.median)
        report.add("percent_of_redis_benchmark", ratios.median * 100)
        _ = try await client.send(RedisCommand("FLUSHALL"))
        let alone = try await appends(engine, writers: 1)
        report.add("appends_per_second_one_at_a_time", alone.rate)
        report.add(alone.latency)
        await engine.close()
        return report
    }

    /// Each writer has a log and waits for each append, as an actor does; all share one connection.
    private func appends(_ engine: RedisEngine, writers: Int) async throws -> (rate: Double, latency: Histogram) {
        let node = try ClusterNode(name: "bench")
        let payload = [UInt8](repeating: 0x61, count: size)
        var logs: [(ClusterLog, SlotLease)] = []
        for writer in 0..<writers {
            let log = ClusterLog("log-\(writer)")
            guard case .acquired(let lease) = try await engine.acquire(log.slot, for: node, duration: .seconds(3_600))
            else { throw UsageError("\(log.slot) has another owner") }
            logs.append((log, lease))
        }
        let start = MonotonicClock.now
        let end = start + UInt64(seconds * 1e9)
        return try await withThrowingTaskGroup(of: (UInt64, Histogram).self) { group in
            for (log, lease) in logs {
                group.addTask {
                    var top: UInt64 = 0
                    var latency = Histogram()
                    while case let began = MonotonicClock.now, began < end {
                        let append = LogAppend(payload, expectedHead: top)
                        guard try await engine.append(append, to: log, lease: lease) == .accepted(top + 1) else {
                            throw UsageError("an append of the only owner was rejected")
                        }
                        top += 1
                        latency.add(MonotonicClock.now - began)
                    }
                    return (top, latency)
                }
            }
            var (count, all): (UInt64, Histogram) = (0, Histogram())
            for try await (appended, latency) in group {
                count += appended
                all.add(latency)
            }
            return (Double(count) / MonotonicClock.seconds(since: start), all)
        }
    }

    /// redis-benchmark sends the same arguments each time. The script's check of the log head is therefore inverted: it runs,
    /// and the append always succeeds.
    private func benchmark(_ server: RedisProcess, _ client: RedisClient, requests: Int) async throws -> Double {
        let script = RedisScript(
            EngineScripts.append.source.replacing("if top ~= ARGV[3] then", with: "if top == ARGV[3] then"))
        guard script.digest != EngineScripts.append.digest else { throw UsageError("the script asks something else") }
        _ = try await client.send(RedisCommand("SCRIPT", ["LOAD", .text(script.source)]))
        let owner = try ClusterNode(name: "bench").description
        _ = try await client.send(
            RedisCommand(
                "HSET", ["tb:{s0}:own", "owner", .text(owner), "fence", "1", "until", "99999999999999"]))
        let keys = ["own", "meta:x", "log:x", "done:x", "calls:x"].map { "tb:{s0}:\($0)" }
        let arguments = [owner, "1", "never", "tb:{s0}:pub:x", "99999999999", "e", String(repeating: "a", count: size)]
        return try server.benchmark(
            ["EVALSHA", script.digest, "\(keys.count)"] + keys + arguments, requests: requests, inFlight: inFlight)
    }
}

extension BenchCommand {
    static let cluster = measure(
        "cluster", "appends to shared logs, compared with redis-benchmark",
        [
            OptionSpec("--size", "BYTES", "size of each entry (512)"),
            OptionSpec("--in-flight", "N", "writers, each with a separate log and one append in flight (64)"),
            OptionSpec("--seconds", "S", "duration of each measurement (2)"),
        ],
        discussion: """
            Starts a redis-server that writes each change to a file (everysec), and appends to logs through a RedisEngine:
            it checks owner, fence, lease and head, writes the entry and publishes it, over one connection.
            redis_benchmark_per_second is redis-benchmark with the same script, one connection and as many commands in flight.
            """
    ) { arguments in
        let load = ClusterLoad(
            size: try arguments.int("--size", in: 0...(1 << 20)) ?? 512,
            inFlight: try arguments.int("--in-flight", in: 1...5_000) ?? 64, seconds: try seconds(arguments, or: 2))
        return try await load.run()
    }
}
