import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Responses that wait for streams: their number, duration and conditions.
@Suite(.timeLimit(.minutes(5))) struct ClusterCommitGateTests {
    /// A client of the first node observes actors of the second one, whose streams have stopped.
    private func withSilent(_ body: (_ client: TextClient, _ names: [String], _ nodes: [Node]) async throws -> Void)
        async throws
    {
        try await withNodes(["a", "b"]) { nodes in
            let names = nodes[1].names(8)
            let client = try await nodes[0].textClient()
            for (number, name) in names.enumerated() {
                client.call(9_000 + number, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            }
            #expect(await eventually { client.versions.count == names.count })
            for shard in nodes[0].server.shards {
                await shard.reactor.perform {
                    for relays in shard.connections.values.compactMap(\.callForwarder) {
                        for stream in Array(relays.streams.all) { relays.streams.suspend(stream) }
                    }
                }
            }
            try await body(client, names, nodes)
            client.abort()
        }
    }

    @Test("a response waits as long as its call is in flight, and is then released completely")
    func cancelled() async throws {
        try await withSilent { client, names, nodes in
            let before = nodes[0].server.bufferedBytes
            for round in 0..<3 {
                let calls = round * 500..<round * 500 + 500
                for call in calls { client.call(call, names[call % 8], "caller()", "[]") }
                #expect(await eventually { await nodes[0].delayedResponseCount() == 500 })
                #expect(nodes[0].server.bufferedBytes > before)
                for call in calls { client.cancel(call) }
                #expect(await eventually { await nodes[0].delayedResponseCount() == 0 })
                #expect(await eventually { nodes[0].server.bufferedBytes == before })
            }
        }
    }

    @Test("a completed call is not answered with timeout when a stream stops")
    func deadline() async throws {
        try await withSilent { client, names, _ in
            client.call(1, names[0], "add(_:)", "[1]", more: #","timeoutMilliseconds":3000"#)
            #expect(await client.answer(1)?.contains(#""result":1"#) == true)
        }
    }

    @Test("responses of actors with active streams do not wait for other streams")
    func others() async throws {
        try await withSilent { client, names, nodes in
            let other = nodes[1].names("boards")[0]
            for call in 0..<100 { client.call(call, names[call % 8], "caller()", "[]") }
            #expect(await eventually { await nodes[0].delayedResponseCount() == 100 })
            client.call(1_000, other, "step()", "[]")
            #expect(await client.answer(1_000) != nil)
            #expect(await nodes[0].delayedResponseCount() == 100)
        }
    }
}
