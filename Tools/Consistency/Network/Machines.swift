import Foundation
import Glibc
import Networking
import TestSupport
import Trebuchet
import TrebuchetTesting

/// The machines of a seed and what runs on them: nodes, a Redis server or two, sentinels if there are two.
final class Machines {
    static let gamePort = 8_080
    private static let linkPort = 7_600
    private static let enginePort = 6_379
    private static let sentinelPort = 26_379
    private static let name = "games"

    let plan: NetworkPlan
    /// nil for nodes of the judge's own executable.
    private let served: ServedNode?
    let nodes: [Host]
    let engines: [Host]
    let sentinels: [Host]
    let namespaces: Namespaces
    /// The links through which clients reach the nodes.
    let relays: [FaultyLink]
    private let folder: String
    /// nil for one that was killed.
    private var servers: [ChildProgram?]
    private var watchers: [ChildProgram] = []
    private(set) var primary = 0
    private let overflows = Count()
    let sentinelLog: SentinelLog
    /// When the replica was known to have what the primary has.
    private var replications: [ContinuousClock.Instant] = []

    init(
        _ plan: NetworkPlan, nodes count: Int, served: ServedNode?, folder: String, seed: UInt64, isVerbose: Bool
    ) async throws {
        self.plan = plan
        self.served = served
        self.folder = folder
        nodes = (0..<count).map { Host(name: "node-\($0)", address: "10.77.0.\(20 + $0)") }
        engines = (0..<(plan.hasSentinels ? 2 : 1)).map { Host(name: "redis-\($0)", address: "10.77.0.\(2 + $0)") }
        sentinels = (0..<(plan.hasSentinels ? 3 : 0)).map {
            Host(name: "sentinel-\($0)", address: "10.77.0.\(10 + $0)")
        }
        sentinelLog = SentinelLog(primary: engines[0].address, isVerbose: isVerbose)
        namespaces = try await Namespaces(nodes + engines + sentinels)
        relays = try nodes.map {
            try FaultyLink(to: SocketAddress(host: $0.address, port: Self.gamePort, isIPv6: false), seed: seed)
        }
        servers = Array(repeating: nil, count: engines.count)
    }

    var programs: [ChildProgram] { servers.compactMap { $0 } + watchers }

    /// How often Redis gave a connection up on which too much waited.
    var overflowCount: Int { overflows.value }

    /// A program at one of them.
    static func start(
        _ program: String, _ arguments: [String], at host: Host, didPrint: (@Sendable (String) -> Void)? = nil
    ) throws -> ChildProgram {
        try ChildProgram("/usr/bin/nsenter", host.namespaceArguments + [program] + arguments, didPrint: didPrint)
    }

    func startNode(_ number: Int) throws -> ChildProgram {
        let engine =
            plan.hasSentinels
            ? "redis+sentinel://\(sentinels.map(\.address).joined(separator: ","))/\(Self.name)"
            : "redis://\(engines[0].address):\(Self.enginePort)"
        let links = plan.isLinked ? Self.linkPort : nil
        if let served {
            return try Self.start(
                served.executable,
                served.arguments(
                    engine: engine, name: "node-\(number)", host: nodes[number].address, port: Self.gamePort,
                    links: links),
                at: nodes[number])
        }
        return try Self.start(
            ServeProcess.built("Consistency"),
            [
                "node", engine, "node-\(number)", nodes[number].address, "\(Self.gamePort)",
                links.map { "\($0)" } ?? "-", plan.durability.rawValue,
            ], at: nodes[number])
    }

    // MARK: Engines

    func startEngines(_ wait: (String, () async throws -> Bool) async throws -> Void) async throws {
        for number in engines.indices { try startEngine(number, follows: number > 0) }
        try await wait("for the engine") { self.servers.allSatisfy { $0?.isReady == true } }
        guard plan.hasSentinels else { return }
        try await wait("for the replica") { try await self.isFollowed() }
        for (number, host) in sentinels.enumerated() {
            let file = "\(folder)/sentinel-\(number).conf"
            let text = """
                port \(Self.sentinelPort)
                bind 0.0.0.0
                protected-mode no
                dir \(folder)
                sentinel monitor \(Self.name) \(engines[0].address) \(Self.enginePort) 2
                sentinel down-after-milliseconds \(Self.name) 1000
                sentinel failover-timeout \(Self.name) 4000

                """
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            let log = sentinelLog
            watchers.append(
                try Self.start("/usr/bin/redis-sentinel", [file], at: host) { log.read($0, of: host.name) })
        }
        try await wait("for sentinels that know each other and the replica") { try await self.knowEachOther() }
    }

    /// - Parameter isRestored: whether it reads `dump.rdb`: with `appendonly yes` Redis does not.
    func startEngine(_ number: Int, follows: Bool, isRestored: Bool = false) throws {
        let data = "\(folder)/redis-\(number)"
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        var arguments = [
            "--port", "\(Self.enginePort)", "--bind", "0.0.0.0", "--protected-mode", "no", "--dir", data, "--save", "",
            "--appendonly", isRestored ? "no" : "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
            "--repl-ping-replica-period", "1", "--repl-diskless-sync-delay", "0",
        ]
        // More than restarted nodes have in flight to each other, and less than arrives while one is suspended.
        if plan.overflows { arguments += ["--client-output-buffer-limit", "pubsub 1500kb 512kb 1"] }
        if follows { arguments += ["--replicaof", engines[primary].address, "\(Self.enginePort)"] }
        let overflows = overflows
        servers[number] = try Self.start(GameEngine.program, arguments, at: engines[number]) {
            if $0.contains("overcoming of output buffer limits") { overflows.add() }
        }
    }

    var isReady: Bool { servers[primary]?.isReady == true }

    func killEngine(_ number: Int) async {
        let program = servers[number]
        servers[number] = nil
        program?.kill()
        _ = await eventually(within: .seconds(20)) { program?.isRunning != true }
    }

    /// `SIGSTOP` and then `SIGCONT`: nothing that was sent to it is lost.
    func stallEngine(_ number: Int, for time: Duration) async throws {
        guard let pid = servers[number]?.pid else { return }
        kill(pid, SIGSTOP)
        try await Task.sleep(for: time)
        kill(pid, SIGCONT)
    }

    func stopEngine(_ number: Int) async throws {
        let program = servers[number]
        servers[number] = nil
        // It closes the connection, which redis-cli takes for an error.
        try await Shell.run("redis-cli -h \(engines[number].address) shutdown || true")
        guard await eventually(within: .seconds(20), { program?.isRunning != true }) else {
            throw Judge.Halt(description: "Redis did not end: \(program?.lines.suffix(5) ?? [])")
        }
    }

    // MARK: Backups

    private var backup: String { "\(folder)/backup.rdb" }

    func backUp() async throws {
        let redis = "redis-cli -h \(engines[0].address)"
        try await Shell.run(
            """
            \(redis) bgsave
            until \(redis) info persistence | grep -q rdb_bgsave_in_progress:0; do sleep 0.02; done
            \(redis) info persistence | grep -q rdb_last_bgsave_status:ok
            cp \(folder)/redis-0/dump.rdb \(backup)
            """)
    }

    /// Starts the engine, which was stopped, with the data of the backup.
    func restoreEngine(_ wait: (String, () async throws -> Bool) async throws -> Void) async throws {
        let (data, redis) = ("\(folder)/redis-0", "redis-cli -h \(engines[0].address)")
        try await Shell.run("rm -rf \(data)/appendonlydir\ncp \(backup) \(data)/dump.rdb")
        try startEngine(0, follows: false, isRestored: true)
        try await wait("for the restored engine") { self.isReady }
        try await Shell.run(
            """
            \(redis) config set appendonly yes
            until \(redis) info persistence | grep -q aof_rewrite_in_progress:0; do sleep 0.02; done
            \(redis) info persistence | grep -q aof_last_bgrewrite_status:ok
            test -e \(data)/appendonlydir/appendonly.aof.manifest
            """)
    }

    func flush() async throws { try await Shell.run("redis-cli -h \(engines[0].address) flushall") }

    /// The primary that sentinels name, when two of them agree.
    func namedPrimary() async throws -> Int? {
        var votes = Array(repeating: 0, count: engines.count)
        for host in sentinels {
            let answer = try await ask(host, Self.sentinelPort, "sentinel get-master-addr-by-name \(Self.name)")
            for (number, engine) in engines.enumerated() where answer.first == engine.address { votes[number] += 1 }
        }
        return votes.firstIndex { $0 >= 2 }
    }

    /// Another primary, which sentinels name and which knows that it is one.
    func hasChanged(from old: Int) async throws -> Bool {
        guard let named = try await namedPrimary(), named != old else { return false }
        guard try await ask(engines[named], Self.enginePort, "role").first == "master" else { return false }
        primary = named
        return true
    }

    /// Whether a replica follows the primary again.
    func isFollowed() async throws -> Bool {
        let asked = ContinuousClock.now
        // The sentinels may have replaced the primary since.
        if !sentinels.isEmpty, let named = try await namedPrimary() { primary = named }
        let lines = try await ask(engines[primary], Self.enginePort, "info replication")
        let isFollowed =
            lines.contains { $0.hasPrefix("slave0:") && $0.contains("state=online") && $0.contains("lag=") }
            && lines.contains { $0.hasPrefix("role:master") }
        if isFollowed { replications.append(asked) }
        return isFollowed
    }

    /// When the replica was last known to have what the primary has.
    func lastReplicated(before time: ContinuousClock.Instant) -> ContinuousClock.Instant {
        replications.last { $0 <= time } ?? time - .seconds(3_600)
    }

    private func knowEachOther() async throws -> Bool {
        for host in sentinels {
            let words = try await ask(host, Self.sentinelPort, "sentinel master \(Self.name)")
            func value(_ key: String) -> String? {
                words.firstIndex(of: key).flatMap { words.indices.contains($0 + 1) ? words[$0 + 1] : nil }
            }
            guard value("num-other-sentinels") == "2", value("num-slaves") == "1", value("flags") == "master" else {
                return false
            }
        }
        return true
    }

    /// Its answer; nothing when it cannot be reached.
    private func ask(_ host: Host, _ port: Int, _ command: String) async throws -> [String] {
        try await Shell.run("timeout 2 redis-cli -h \(host.address) -p \(port) \(command) 2>/dev/null || true").map {
            $0.trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}

extension ChildProgram {
    /// A Redis server that has started.
    var isReady: Bool { lines.contains { $0.contains("eady to accept connections") } }
}
