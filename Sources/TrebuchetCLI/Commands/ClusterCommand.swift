import Commands
import Trebuchet
import TrebuchetCluster
import TrebuchetRedis

/// `trebuchet cluster`: what the nodes of a cluster are doing.
enum ClusterCommand {
    static let spec = CommandSpec(
        name: "cluster",
        summary: "show the nodes of a cluster and what they own, or stop one in order",
        subcommands: [status, owner, drain],
        discussion: "trebuchet serve --cluster URL --node NAME makes a server one of several. See Docs/Cluster.md.",
        run: { _ in })

    private static let address = OptionSpec("--cluster", "URL", "where the nodes' engine is (redis://127.0.0.1:6379)")

    private static let status = CommandSpec(
        name: "cluster status",
        summary: "list the nodes that live, with how many of the 1,024 slots each owns",
        options: [address, CommandTimeout.option],
        discussion: "Exits with 1 when a slot has no owner.",
        run: { arguments in
            let engine = try engine(arguments)
            let nodes = try await engine.nodes()
            var (owned, free) = try await owners(engine)
            for node in nodes { Console.print("\(node.node.name)  \(owned.removeValue(forKey: node.node) ?? 0) slots") }
            for (node, count) in owned.sorted(by: { $0.key.name < $1.key.name }) {
                Console.print("\(node.name)  \(count) slots, and is not heard of any more")
            }
            await engine.close()
            guard free > 0 else { return }
            throw UnownedSlots(count: free)
        })

    private static let owner = CommandSpec(
        name: "cluster owner",
        summary: "say on which node actors live, or would",
        operands: "<actor>…",
        operandCount: 1...1_000,
        options: [address, CommandTimeout.option],
        discussion: """
            Of actors that are exposed with placement: .cluster, by their names, as counters/a. Exits with 1 when one has no owner now.
            """,
        run: { arguments in
            let engine = try engine(arguments)
            var free = 0
            for name in arguments.operands {
                let owner = try await engine.holder(of: ClusterSlot(of: name))?.lease.owner
                if owner == nil { free += 1 }
                Console.print("\(LogLine.of(name))  \(owner?.name ?? "-")")
            }
            await engine.close()
            guard free > 0 else { return }
            throw UnownedSlots(count: free)
        })

    private static let drain = CommandSpec(
        name: "cluster drain",
        summary: "stop a node in order: it gives away what it owns, sends its clients to others and ends",
        operands: "<node>",
        operandCount: 1...1,
        options: [
            address,
            OptionSpec("--timeout", "SECONDS", "give up when it has given nothing away for so long (30)"),
        ],
        discussion: "Returns when the node is none of the cluster any more. Says on standard error how far it is.",
        run: { arguments in
            let engine = try engine(arguments)
            let name = arguments.operands[0]
            let found = try await engine.nodes().map(\.node).filter { $0.name == name }
            CommandTimeout.current?.stop()
            guard let node = found.first else {
                throw UsageError("no node '\(LogLine.of(name))' lives; 'trebuchet cluster status' lists them")
            }
            guard found.count == 1 else { throw NodeTrouble("\(found.count) nodes are called '\(LogLine.of(name))'") }
            CommandTimeout.current?.restart()
            guard try await TrebuchetServer.stop(node, at: engine) else {
                throw NodeTrouble("node '\(LogLine.of(name))' does not listen")
            }
            let patience = Duration.seconds(try arguments.int("--timeout", in: 1...3_600) ?? 30)
            var (count, changed) = (Int.max, ContinuousClock.now)
            while true {
                CommandTimeout.current?.restart()
                let (owners, _) = try await owners(engine)
                CommandTimeout.current?.stop()
                let owned = owners[node] ?? 0
                if owned == 0 { break }
                if owned != count { (count, changed) = (owned, .now) }
                guard ContinuousClock.now - changed < patience else {
                    throw NodeTrouble(
                        "\(name) has given nothing away for \(patience.components.seconds) s, and has \(owned) slots")
                }
                Console.error("trebuchet cluster drain: \(name) has \(owned) slots")
                try await Task.sleep(for: .milliseconds(500))
            }
            await engine.close()
            Console.print("\(name) has given away what it owned, and is none of the cluster any more")
        })

    /// How many slots each node owns, and how many have no owner.
    private static func owners(_ engine: RedisEngine) async throws -> ([ClusterNode: Int], free: Int) {
        var (owned, free): ([ClusterNode: Int], Int) = ([:], 0)
        for slot in ClusterSlot.all {
            if let owner = try await engine.holder(of: slot)?.lease.owner {
                owned[owner, default: 0] += 1
            } else {
                free += 1
            }
        }
        return (owned, free)
    }

    static func engine(_ arguments: ParsedArguments) throws -> RedisEngine {
        let url = arguments.string("--cluster") ?? "redis://127.0.0.1:6379"
        CommandTimeout.current?.start(awaiting: "answer of the engine")
        do {
            return try RedisEngine(url: url)
        } catch {
            throw UsageError("--cluster: \(error.message)")
        }
    }

    /// What a server is to be a node of; nil for one that is none.
    static func membership(
        _ arguments: ParsedArguments, say: @Sendable (ServerEvent.Level, String) -> Void
    ) async throws -> (ClusterMembership, RedisEngine)? {
        guard arguments.string("--cluster") != nil else {
            let others = ["--node", "--node-address", "--after-data-loss"]
            for option in others where arguments.string(option) != nil {
                throw UsageError("\(option) goes with --cluster")
            }
            return nil
        }
        guard let name = arguments.string("--node") else {
            throw UsageError("--cluster needs --node NAME, unlike that of other nodes")
        }
        let address = try arguments.string("--node-address").map(nodeAddress)
        let afterDataLoss = try arguments.string("--after-data-loss").map { text throws(UsageError) in
            guard let policy = DataLossPolicy(rawValue: text) else {
                throw UsageError("--after-data-loss: '\(text)' is neither end nor continue")
            }
            return policy
        }
        let engine = try engine(arguments)
        for warning in try await engine.check() { say(.warning, "warning: \(LogLine.of(warning))") }
        do {
            let membership = try ClusterMembership(
                of: name, at: engine, address: address, afterDataLoss: afterDataLoss ?? .end)
            return (membership, engine)
        } catch {
            throw UsageError("--node: \(error.message)")
        }
    }

    private static func nodeAddress(_ text: String) throws(UsageError) -> NodeAddress {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        // An address of IPv6 stands in brackets, as in a URL.
        let host = parts.dropLast().joined(separator: ":").trimmingPrefix("[")
        guard parts.count == 2 || text.hasPrefix("["), let port = parts.last.flatMap({ UInt16($0) }), !host.isEmpty,
            host.hasSuffix("]") == text.hasPrefix("[")
        else { throw UsageError("--node-address: '\(text)' is not HOST:PORT") }
        return NodeAddress(host: host.hasSuffix("]") ? String(host.dropLast()) : String(host), port: Int(port))
    }

    private struct UnownedSlots: Error, CustomStringConvertible {
        let count: Int

        var description: String {
            "\(count) slots have no owner: nodes that come, go or have died hand them over within some seconds"
        }
    }

    private struct NodeTrouble: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }
}
