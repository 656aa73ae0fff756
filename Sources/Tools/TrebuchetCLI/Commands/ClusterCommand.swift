import Commands
import Platform
import Trebuchet
import TrebuchetCluster
import TrebuchetNodes
import TrebuchetRedis

/// `trebuchet cluster`: shows and stops the nodes of a cluster.
enum ClusterCommand {
    static let spec = CommandSpec(
        name: "cluster",
        summary: "show the nodes of a cluster and the slots they own, drain a node, or make certificates",
        subcommands: [status, owner, drain, ClusterCertificates.spec],
        discussion:
            "Start a node with 'trebuchet serve --cluster URL --node NAME'. See Docs/Guides/Cluster.md.",
        run: { _ in })

    private static let address = OptionSpec("--cluster", "URL", "the coordination store (redis://127.0.0.1:6379)")

    private static let status = CommandSpec(
        name: "cluster status",
        summary: "list live nodes and their number of slots, of 1,024",
        options: [address, CommandTimeout.option],
        discussion: "Exits with 1 if a slot has no owner.",
        run: { arguments in
            let engine = try engine(arguments)
            let nodes = try await connecting { try await engine.nodes() }
            var (owned, free) = try await owners(engine)
            for node in nodes {
                let count = owned.removeValue(forKey: node.node) ?? 0
                Console.print("\(node.node.name)  \(count.counted("slot"))")
            }
            for (node, count) in owned.sorted(by: { $0.key.name < $1.key.name }) {
                Console.print("\(node.name)  \(count.counted("slot")); no longer a live node")
            }
            await engine.close()
            guard free > 0 else { return }
            throw UnownedSlots(count: free)
        })

    private static let owner = CommandSpec(
        name: "cluster owner",
        summary: "print the owner node of each actor",
        operands: "<actor>…",
        operandCount: 1...1_000,
        options: [address, CommandTimeout.option],
        discussion: """
            For names of actors with placement: .cluster, such as counters/a. Exits with 1 if one has no owner.
            """,
        run: { arguments in
            let engine = try engine(arguments)
            var free = 0
            for name in arguments.operands {
                let owner = try await connecting { try await engine.owner(of: ClusterSlot(of: name)) }?.lease.owner
                if owner == nil { free += 1 }
                Console.print("\(LogLine.of(name))  \(owner?.name ?? "-")")
            }
            await engine.close()
            guard free > 0 else { return }
            throw UnownedSlots(count: free)
        })

    private static let drain = CommandSpec(
        name: "cluster drain",
        summary: "drain a node: move its slots and clients to other nodes and end it",
        operands: "<node>",
        operandCount: 1...1,
        options: [
            address,
            OptionSpec("--timeout", "SECONDS", "maximum time without progress (30)"),
        ],
        discussion: "Exits when the node has left the cluster. Reports progress on standard error.",
        run: { arguments in
            let engine = try engine(arguments)
            let name = arguments.operands[0]
            let found = try await connecting { try await engine.nodes() }.map(\.node).filter { $0.name == name }
            CommandTimeout.current?.stop()
            guard let node = found.first else {
                throw UsageError("node '\(LogLine.of(name))' is not live; 'trebuchet cluster status' lists the nodes")
            }
            guard found.count == 1 else {
                throw NodeCommandError(
                    "\(found.count) live nodes have the name '\(LogLine.of(name))'; if it was restarted, retry in some seconds, "
                        + "else give each node a unique name")
            }
            CommandTimeout.current?.restart()
            guard try await TrebuchetServer.stop(node, at: engine) else {
                throw NodeCommandError(
                    "node '\(LogLine.of(name))' does not receive messages; stop its process with SIGTERM")
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
                    throw NodeCommandError(
                        "node '\(LogLine.of(name))' made no progress for \(patience.components.seconds) s and still has "
                            + "\(owned.counted("slot")); see its server log, or repeat with a longer --timeout")
                }
                Console.error("trebuchet cluster drain: \(name) has \(owned.counted("slot"))")
                try await Task.sleep(for: .milliseconds(500))
            }
            let remaining = try await engine.nodes().count { $0.node != node }
            await engine.close()
            Console.print(
                remaining > 0
                    ? "\(name) has moved its slots and left the cluster"
                    : "\(name) has left the cluster: no other node is live, and its slots have no owner")
        })

    /// Returns the number of slots of each node, and of slots without an owner.
    private static func owners(_ engine: RedisEngine) async throws -> ([ClusterNode: Int], free: Int) {
        var (owned, free): ([ClusterNode: Int], Int) = ([:], 0)
        for slot in ClusterSlot.all {
            if let owner = try await engine.owner(of: slot)?.lease.owner {
                owned[owner, default: 0] += 1
            } else {
                free += 1
            }
        }
        return (owned, free)
    }

    /// Runs a request to the coordination store. Adds a remedy to the error of a store that cannot be reached.
    private static func connecting<Response>(
        _ request: () async throws -> Response
    ) async throws -> Response {
        do {
            return try await request()
        } catch let error as ClusterEngineError where error.isTemporary {
            throw ClusterEngineError(
                .unavailable,
                "the coordination store is unavailable: \(error.message); start it, or pass the URL of another with --cluster"
            )
        }
    }

    static func engine(_ arguments: ParsedArguments) throws -> RedisEngine {
        let url = arguments.string("--cluster") ?? "redis://127.0.0.1:6379"
        CommandTimeout.current?.start(awaiting: "response of the coordination store")
        do {
            return try RedisEngine(url: url)
        } catch {
            throw UsageError("--cluster: \(error.message)")
        }
    }

    /// Returns the membership of a server in a cluster; nil without `--cluster`.
    static func membership(
        _ arguments: ParsedArguments, report: @Sendable (ServerEvent.Level, String) -> Void
    ) async throws -> (ClusterMembership, RedisEngine)? {
        guard arguments.has("--cluster") else { return nil }
        guard let name = arguments.string("--node") else {
            throw UsageError("--cluster requires --node NAME, a unique name of this node")
        }
        let address = try arguments.string("--node-address").map(nodeAddress)
        let certificates = try certificates(arguments)
        let afterDataLoss = arguments.string("--after-data-loss").flatMap { DataLossPolicy(rawValue: $0) }
        let wait = Duration.seconds(try arguments.int("--cluster-wait") ?? 0)
        let engine = try engine(arguments)
        let warnings = try await connecting {
            try await ClusterEngineError.retry(for: wait) { error in
                report(.warning, LogLine.of("waiting up to \(wait) for the coordination store: \(error.message)"))
            } _: { () async throws(ClusterEngineError) in
                try await engine.check()
            }
        }
        for warning in warnings { report(.warning, "warning: \(LogLine.of(warning))") }
        do {
            let membership = try ClusterMembership(
                of: name, at: engine, address: address, certificates: certificates,
                dataLossPolicy: afterDataLoss ?? .end, startTimeout: wait)
            return (membership, engine)
        } catch {
            throw UsageError("--node: \(error.message)")
        }
    }

    private static let certificateOptions = ["--cluster-certificate", "--cluster-key", "--cluster-authority"]

    /// Returns the certificate files of a node; nil without their options.
    private static func certificates(_ arguments: ParsedArguments) throws(UsageError) -> NodeCertificateFiles? {
        let files = certificateOptions.compactMap { arguments.string($0) }
        guard let first = certificateOptions.first(where: { arguments.string($0) != nil }) else { return nil }
        guard files.count == certificateOptions.count else {
            throw UsageError("\(certificateOptions.joined(separator: ", ")) require each other")
        }
        guard arguments.string("--node-address") != nil else { throw UsageError("\(first) requires --node-address") }
        return NodeCertificateFiles(certificateChainFile: files[0], privateKeyFile: files[1], authorityFile: files[2])
    }

    /// Throws if the URL of a coordination store is invalid.
    static func checkURL(_ text: String) throws(UsageError) {
        do {
            _ = try RedisURL(text)
        } catch {
            throw UsageError("--cluster: \(error.message)")
        }
    }

    /// Returns the URL of a coordination store without its password.
    static func masked(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://"), let at = url.lastIndex(of: "@"), scheme.upperBound <= at,
            let colon = url[scheme.upperBound..<at].firstIndex(of: ":"), url.index(after: colon) < at
        else { return url }
        return "\(url[...colon])********\(url[at...])"
    }

    static func nodeAddress(_ text: String) throws(UsageError) -> NodeAddress {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        // An IPv6 address is in brackets, as in a URL.
        let host = parts.dropLast().joined(separator: ":").trimmingPrefix("[")
        guard parts.count == 2 || text.hasPrefix("["), let port = parts.last.flatMap({ UInt16($0) }), !host.isEmpty,
            host.hasSuffix("]") == text.hasPrefix("[")
        else { throw UsageError("--node-address: '\(text)' is not HOST:PORT, such as 10.0.0.1:7000") }
        return NodeAddress(host: host.hasSuffix("]") ? String(host.dropLast()) : String(host), port: Int(port))
    }

    /// The error while slots have no owner.
    private struct UnownedSlots: Error, CustomStringConvertible {
        let count: Int

        var description: String {
            count == 1
                ? "1 slot has no owner; if nodes have just joined or left, retry in some seconds"
                : "\(count) slots have no owner; if nodes have just joined or left, retry in some seconds"
        }
    }

    /// An error of a command for one node.
    private struct NodeCommandError: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }
}
