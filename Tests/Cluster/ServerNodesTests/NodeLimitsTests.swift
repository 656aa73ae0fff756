import Networking
import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The memory that clients can make a node use.
@Suite(.timeLimit(.minutes(5))) struct NodeLimitsTests {
    @Test("a name over the size limit is neither stored nor repeated in the error")
    func longNames() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let long = String(repeating: "x\u{301}", count: 100_000)
            let peer = try await nodes[0].textClient()
            for number in 0..<8 {
                let name = "tills/\(number)\(long)"
                peer.call(number * 3, name, "length(_:)", #"["a"]"#)
                peer.repeat(number * 3 + 1, name, "pay(_:_:)", #"["a",0]"#, of: "1.2.3")
                peer.send(
                    "streamResume",
                    #""streamID":"s1","callID":"\#(number * 3 + 2)","actorID":"\#(name)","targetIdentifier":"observeCount""#
                )
            }
            for callID in 0..<24 {
                let answer = try #require(await peer.answer(callID))
                #expect(answer.contains("must not exceed 256 bytes") && answer.utf8.count < 1_000)
            }
            for node in nodes { #expect(node.membership.store.partitionCount == 0) }
            peer.abort()
        }
    }

    @Test("a client's node keeps only the normalized form of a filter, and refuses an invalid one")
    func filters() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let names = nodes[1].names(4)
            let client = try await nodes[0].textClient()
            let space = String(repeating: " ", count: 900_000)
            for (number, name) in names.enumerated() {
                client.call(number, name, "observeCount", "[]", more: #","filter":{"distinct":true\#(space)}"#)
            }
            #expect(await eventually { client.versions.count == 4 })
            #expect(await relayedFilters(at: nodes[0]) == Array(repeating: StreamFilter.distinct(), count: 4))
            for text in [
                #"{"path":"a"}"#, #"{"other":1}"#, "7", #"{"path":"/\#(String(repeating: "x", count: 2_000))"}"#,
            ] {
                client.call(9, names[0], "observeCount", "[]", more: #","filter":\#(text)"#)
            }
            #expect(await eventually { client.answers("9").count == 4 })
            #expect(client.answers("9").allSatisfy { $0.error == "invalidArguments" })
            client.abort()
        }
    }

    @Test("streams count for their connection, whichever node owns their actors, and continue when a node dies")
    func streams() async throws {
        var limits = ServerLimits()
        limits.streams.perConnection = 10
        try await withNodes(["a", "b", "c"], limits: limits) { nodes in
            let client = try await nodes[0].textClient()
            let names = nodes[0].names(2) + nodes[1].names(5) + nodes[2].names(5)
            func refusals(_ limit: String) -> Int { client.messages.count { $0.text.contains(limit) } }
            for (number, name) in names.enumerated() { client.observe("s\(number)", name) }
            #expect(
                await eventually { client.versions.count == 10 && refusals("ServerLimits.streams.perConnection") == 2 })
            // The limit is reached, and each stream continues without a refusal.
            try await nodes[1].kill()
            #expect(await eventually { client.starts.count >= 15 })
            #expect(client.messages.count { !$0.error.isEmpty } == 2)
            #expect(await streamsInUse(at: nodes[0]) == 10)
            // An ended stream makes room for another, on whichever node.
            client.send("streamEnd", #""streamID":"\#(client.starts[0].streamID)","reason":"clientUnsubscribed""#)
            client.observe("next", names[11])
            #expect(
                await eventually { client.starts.contains { $0.callID == "next" } },
                "\(client.messages.suffix(20).map(\.text))")
            client.observe("beyond", names[11])
            #expect(await eventually { refusals("ServerLimits.streams.perConnection") == 3 })
            client.abort()
            #expect(await eventually { [0, 2].allSatisfy { nodes[$0].server.context.quotas.count(.streams) == 0 } })
        }
    }

    @Test("a cancelled call holds no memory while its actor has no owner")
    func ownerless() async throws {
        let engine = MemoryEngine()
        let node = try Node("a", engine, through: FaultyEngine(engine, .init(givesNoSlots: true)))
        try await node.start()
        let peer = try await node.textClient()
        for callID in 0..<100 {
            peer.call(
                callID, "tills/a", "length(_:)", #"["a"]"#, more: callID % 2 == 0 ? "" : #","timeoutMilliseconds":1"#)
        }
        #expect(await eventually { await waiting(at: node) > 0 })
        for callID in stride(from: 0, to: 100, by: 2) { peer.cancel(callID) }
        for callID in 0..<100 { #expect(await peer.answer(callID) != nil) }
        #expect(await eventually { await waiting(at: node) == 0 })
        // The call of a departed client holds none either.
        peer.call(100, "tills/a", "length(_:)", #"["a"]"#)
        #expect(await eventually { await waiting(at: node) == 1 })
        peer.abort()
        #expect(await eventually { await waiting(at: node) == 0 })
        await node.stop()
    }

    @Test("cancelled calls not yet sent to their node count for their caller, and other callers continue")
    func toOtherNode() async throws {
        var limits = ServerLimits()
        limits.memory.perConnection = 2 << 20
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate, limits: limits) { nodes in
            let till = nodes[1].names("tills")[0]
            let (peer, other) = (try await nodes[0].textClient(), try await nodes[0].textClient())
            let exchange = try #require(nodes[0].server.context.nodes?.exchange)
            // From then on its owner is known.
            peer.call(100, till, "length(_:)", #"["a"]"#)
            #expect(await peer.answer(100) != nil)
            // From then on its owner is known.
            other.call(0, till, "length(_:)", #"["a"]"#)
            #expect(await other.answer(0) != nil)
            gate.set { $0.holdsMessages = true }
            let text = String(repeating: "x", count: 100_000)
            for callID in 0..<100 {
                peer.call(callID, till, "length(_:)", #"["\#(text)"]"#)
                peer.cancel(callID)
            }
            // When the connection is closed for this, the client may fail to read the reason.
            #expect(
                await eventually {
                    peer.texts.contains { $0.contains("memory.perConnection") || $0.hasPrefix("closed") }
                })
            #expect((1 << 20...2 << 20).contains(exchange.waitingBytes))
            other.call(1, till, "length(_:)", #"["\#(text)"]"#)
            gate.set { $0.holdsMessages = false }
            #expect(try #require(await other.answer(1)).contains(#""result":100000"#))
            #expect(await eventually { exchange.waitingBytes == 0 })
            peer.abort()
            other.abort()
        }
    }

    @Test("a caller with claims over the limit between nodes reaches no actors of other nodes, and breaks no channels")
    func manyClaims() async throws {
        let isSmall = Flag()
        let access = AccessPolicy(authenticate: { _ in
            Principal(id: "ada", claims: ["text": String(repeating: "x", count: isSmall.isSet ? 1_000 : 2_000_000)])
        })
        try await withNodes(["a", "b"], access: access) { nodes in
            let large = try await nodes[0].textClient()
            isSmall.set()
            let small = try await nodes[0].textClient()
            let (here, there) = (nodes[0].names("tills")[0], nodes[1].names("tills")[0])
            small.callOnce(1, there, "hold(_:)", #"["claims"]"#)
            #expect(await eventually { PaymentLog.shared.count("claims") == 1 })
            large.call(1, there, "length(_:)", #"["abc"]"#)
            #expect(
                try #require(await large.answer(1)).contains(
                    "roles and claims and the retained headers exceed 262144 bytes"))
            large.call(2, here, "length(_:)", #"["abc"]"#)
            #expect(try #require(await large.answer(2)).contains(#""result":3"#))
            PaymentLog.shared.release("claims")
            #expect(try #require(await small.answer(1)).contains(#""result":"claims""#))
            #expect(PaymentLog.shared.count("claims") == 1)
            large.abort()
            small.abort()
        }
    }

    private func relayedFilters(at node: Node) async -> [StreamFilter?] {
        var filters: [StreamFilter?] = []
        for shard in node.server.shards {
            filters += await shard.reactor.perform {
                shard.connections.values.flatMap { $0.callForwarder.map { $0.streams.all.map(\.filter) } ?? [] }
            }
        }
        return filters
    }

    private func streamsInUse(at node: Node) async -> Int {
        var count = 0
        for shard in node.server.shards {
            count += await shard.reactor.perform {
                shard.connections.values.reduce(0) { $0 + Int($1.streamUsage.streams) }
            }
        }
        return count
    }

    /// The number of calls that wait for the owner of their actor.
    private func waiting(at node: Node) async -> Int {
        var count = 0
        for shard in node.server.shards { count += await shard.reactor.perform { shard.node?.lookups.count ?? 0 } }
        return count
    }
}
