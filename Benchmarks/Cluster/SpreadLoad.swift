import Commands
import Trebuchet
import TrebuchetRedis

/// Measures the server cost of a delivery with all subscribers of a state at one node, and with half of them at each of two
/// nodes.
struct SpreadLoad {
    let subscribers: Int
    let rate: Double
    let size: Int
    let rounds: Int
    let seconds: Double

    func run() async throws -> BenchReport {
        let alone = try MeasuredServer(["--bench"])
        defer { alone.stop() }
        let redis = try await RedisProcess()
        defer { redis.stop() }
        let url = "redis://127.0.0.1:\(redis.port)"
        let engine = try RedisEngine(url: url)
        var nodes: [MeasuredServer] = []
        defer { for node in nodes { node.stop() } }
        for name in ["one", "two"] {
            nodes.append(
                try MeasuredServer(["--bench", "--cluster", url, "--node", name, "--node-address", "127.0.0.1:0"]))
        }
        try await TakeoverLoad.settle(engine, nodes.count)
        await engine.close()
        var costs: (one: [Double], two: [Double], percent: [Double]) = ([], [], [])
        var skipped = 0.0
        for _ in 0..<rounds {
            var round: [Double] = []
            for servers in [[alone], nodes] {
                let load = FanoutLoad(rate: rate, actor: "boards/spread", target: "publish(stamp:)")
                let report = try await load.run(servers, subscribers: subscribers, size: size, seconds: seconds)
                round.append(report[FanoutLoad.cost] ?? 0)
                skipped += report["skipped"] ?? 0
            }
            costs.one.append(round[0])
            costs.two.append(round[1])
            costs.percent.append(100 * round[1] / max(1, round[0]))
        }
        var report = BenchReport()
        report.add("subscribers", subscribers)
        report.add("updates_per_second", rate)
        report.add("state_bytes", size)
        report.add("rounds", rounds)
        report.add("one_node_cpu_ns_per_delivery", Self.median(costs.one))
        report.add("two_nodes_cpu_ns_per_delivery", Self.median(costs.two))
        report.add("two_nodes_percent_of_one", Self.median(costs.percent))
        report.add("least_percent", costs.percent.min() ?? 0)
        report.add("most_percent", costs.percent.max() ?? 0)
        report.add("skipped", skipped)
        return report
    }

    private static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? 0 : (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

extension BenchCommand {
    static let spread = measure(
        "spread", "one state to subscribers of one and two nodes",
        [
            OptionSpec("--subscribers", "N", "subscribers (1000)"),
            OptionSpec("--rate", "N", "updates per second (200)"),
            OptionSpec("--size", "BYTES", "size of the encoded state (200)"),
            OptionSpec("--rounds", "N", "rounds that measure both (5)"),
            OptionSpec("--seconds", "S", "duration of each measurement (3)"),
        ],
        discussion: """
            Starts a single server, and a redis-server with two directly connected nodes, each a process with one reactor.
            The processor time of two nodes is the sum of both, without redis-server.
            """
    ) { arguments in
        let load = SpreadLoad(
            subscribers: try arguments.int("--subscribers", in: 1...9_000) ?? 1000,
            rate: try arguments.double("--rate", in: 0.1...100_000) ?? 200,
            size: try arguments.int("--size", in: 1...(1 << 20)) ?? 200,
            rounds: try arguments.int("--rounds", in: 1...100) ?? 5, seconds: try seconds(arguments, or: 3))
        return try await load.run()
    }
}
