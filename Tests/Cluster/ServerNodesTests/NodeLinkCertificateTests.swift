import Networking
import NodeSupport
import TestSupport
import Testing
import Transports
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Certificates of nodes, from files and from the coordination store.
@Suite(.timeLimit(.minutes(5))) struct NodeLinkCertificateTests {
    /// The message of the error.
    private static func problem(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "none"
        } catch { return "\(error)" }
    }

    /// Calls an actor of the second node through the first until their messages use links.
    private static func useLinks(_ nodes: [Node]) async throws -> Bool {
        let tally = try await nodes[0].client().resolve(Tally.self, id: nodes[1].names(1)[0])
        return await eventually {
            _ = try? await tally.add(1)
            return nodes.allSatisfy { $0.server.context.nodes?.openLinkCount == 1 }
        }
    }

    @Test("nodes with certificates from files use links; replaced files are used for new links without a restart")
    func files() async throws {
        let engine = MemoryEngine()
        let folder = try CertificateFolder()
        let nodes = try ["a", "b"].map { try Node($0, engine, isReached: true, certificates: folder.issue(to: $0)) }
        try await Node.with(nodes) {
            #expect(try await Self.useLinks(nodes))
            #expect(try await engine.values(["authority"], of: ClusterTable("node links")) == [nil])
            for node in nodes {
                let before = try #require(node.server.context.nodes?.linkCertificate)
                try folder.issue(to: node.member.node.name)
                try node.server.reloadCertificates()
                #expect(node.server.context.nodes?.linkCertificate != before)
                node.server.context.nodes?.cutLinks()
            }
            #expect(try await Self.useLinks(nodes))
            try folder.issue(to: "a", validFor: .seconds(-60))
            #expect(throws: TransportError.self) { try nodes[0].server.reloadCertificates() }
            nodes[0].server.context.nodes?.cutLinks()
            #expect(try await Self.useLinks(nodes), "the certificate from before stays in use")
        }
    }

    @Test("a node with another authority gets no link: both logs name the cause, and calls go through the store")
    func otherAuthority() async throws {
        let engine = MemoryEngine()
        let (folder, other) = (try CertificateFolder(), try CertificateFolder())
        let logs = [LogLines(), LogLines()]
        let nodes = try [
            Node(
                "a", engine, isReached: true, certificates: folder.issue(to: "a"),
                log: ConsoleLog { logs[0].append($0) }),
            Node(
                "b", engine, isReached: true, certificates: other.issue(to: "b"), log: ConsoleLog { logs[1].append($0) }
            ),
        ]
        try await Node.with(nodes) {
            let tally = try await nodes[0].client().resolve(Tally.self, id: nodes[1].names(1)[0])
            #expect(try await tally.add(1) == 1)
            #expect(
                await logs[0].contains("node b is not reachable", "unable to get local issuer", "coordination store"))
            #expect(await logs[1].contains("rejected a node link", "the peer does not trust its authority"))
            #expect(try await tally.add(1) == 2)
            #expect(nodes.allSatisfy { $0.server.context.nodes?.openLinkCount == 0 })
        }
    }

    @Test("a server does not start with certificates that other nodes would reject, and the error names the cause")
    func invalidFiles() async throws {
        let folder = try CertificateFolder()
        let other = try CertifiedKey.makeAuthority(validFor: nil)
        let files = [
            (try folder.issue(to: "x"), "is that of node 'x', and this node is 'a'"),
            (try folder.issue(to: "b", validFor: .seconds(-60)), "certificate has expired"),
            (try folder.issue(to: "c", by: other), "is not valid for its authority"),
            (
                NodeCertificateFiles(certificateChainFile: "/absent", privateKeyFile: "", authorityFile: ""),
                "'/absent': No such"
            ),
        ]
        for (files, reason) in files {
            let node = try Node("a", MemoryEngine(), isReached: true, certificates: files)
            let problem = await Self.problem { try await node.start() }
            #expect(problem.contains(reason), "\(problem)")
        }
    }

    @Test("nodes that start at the same time have one authority, and another one after the store was emptied")
    func storedAuthority() async throws {
        let engine = MemoryEngine()
        let found = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<8 { group.addTask { try await NodeLinkIdentity.authority(at: engine) } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(found.count == 1)
        let first = try #require(found.first)
        let identity = try NodeLinkIdentity(of: ClusterNode(name: "a"), authority: first, at: engine)
        let (cluster, end) = (identity.tls.name.cluster, identity.tls.remainingTime)
        #expect(end > .seconds(1_000 * 365 * 86_400))
        let second = try await NodeLinkIdentity.authority(at: MemoryEngine())
        let change = TableChange([.init("authority", .put(second))])
        _ = try await engine.apply(change, to: ClusterTable("node links"))
        await identity.refresh()
        #expect(identity.tls.name.cluster == cluster, "not in doubt")
        identity.didFail()
        await identity.refresh()
        #expect(identity.tls.name.cluster != cluster)
        #expect(try CertifiedKey(certificate: second, key: second).authorityCluster == identity.tls.name.cluster)
        _ = try await engine.apply(TableChange([.init("authority", .put([1]))]), to: ClusterTable("node links"))
        identity.didFail()
        await identity.refresh()
        #expect(identity.tls.name.cluster != cluster, "an invalid authority is not used")
    }

    @Test("nodes whose authorities differ, because the store was emptied, agree again by themselves")
    func agreeing() async throws {
        let engine = MemoryEngine()
        let nodes = try ["a", "b", "c"].map { try Node($0, engine, isReached: true) }
        let (first, last) = (Array(nodes.prefix(2)), nodes[2])
        try await Node.with(first) {
            #expect(try await Self.useLinks(first))
            _ = try await engine.apply(
                TableChange([.init("authority", .delete)]), to: ClusterTable("node links"))
            try await last.start()
            await ownAll(nodes)
            let client = try await first[0].client()
            let tallies = try nodes.dropFirst().map { try client.resolve(Tally.self, id: $0.names(1)[0]) }
            for node in first { node.server.context.nodes?.cutLinks() }
            #expect(
                await eventually {
                    for tally in tallies { _ = try? await tally.add(1) }
                    return first[0].server.context.nodes?.openLinkCount == 2
                        && nodes.dropFirst().allSatisfy { $0.server.context.nodes?.openLinkCount == 1 }
                })
            await last.stop()
        }
    }

    @Test("the expiry of a certificate is logged once a day, from 30 days before, until it is replaced")
    func expiryLog() {
        var log = CertificateExpiryLog()
        let (day, hour) = (86_400 as Int64, 3_600_000_000_000 as UInt64)
        #expect(log.line(remaining: .seconds(31 * day), at: 1) == nil)
        let first = log.line(remaining: .seconds(30 * day - 1), at: 1)
        #expect(first?.level == .warning && first?.text.contains("expires in 29 days; replace the files") == true)
        #expect(log.line(remaining: .seconds(29 * day), at: 1 + 23 * hour) == nil)
        #expect(log.line(remaining: .seconds(day), at: 1 + 24 * hour)?.text.contains("in 1 day;") == true)
        let last = log.line(remaining: .zero, at: 1 + 48 * hour)
        #expect(last?.level == .error && last?.text.contains("has expired") == true)
        #expect(log.line(remaining: .seconds(365 * day), at: 1 + 49 * hour) == nil)
        #expect(log.line(remaining: .seconds(day), at: 1 + 49 * hour) != nil)
    }
}
