import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet

/// Answers that wait for streams: how many, how long, whose.
@Suite(.timeLimit(.minutes(5))) struct ClusterCommitGateTests {
    /// A client of the first node observes some of the second one's, and none of that comes any more.
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
                    for relays in shard.connections.values.compactMap(\.forwarder) {
                        for stream in relays.streams.values { relays.resuming.insert(stream) }
                        relays.streams = [:]
                    }
                }
            }
            try await body(client, names, nodes)
            client.abort()
        }
    }

    @Test("an answer waits as long as its call is under way, and then nothing of it stays")
    func cancelled() async throws {
        try await withSilent { client, names, nodes in
            let before = nodes[0].server.bufferedBytes
            for round in 0..<3 {
                let calls = round * 500..<round * 500 + 500
                for call in calls { client.call(call, names[call % 8], "caller()", "[]") }
                #expect(await eventually { await nodes[0].held() == 500 })
                #expect(nodes[0].server.bufferedBytes > before)
                for call in calls { client.cancel(call) }
                #expect(await eventually { await nodes[0].held() == 0 })
                #expect(await eventually { nodes[0].server.bufferedBytes == before })
            }
        }
    }

    @Test("a call that was done is not answered with timeout because a stream does not come")
    func deadline() async throws {
        try await withSilent { client, names, _ in
            client.call(1, names[0], "add(_:)", "[1]", more: #","timeoutMilliseconds":3000"#)
            #expect(await client.answer(1)?.contains(#""result":1"#) == true)
        }
    }

    @Test("answers of actors whose streams come wait for none")
    func others() async throws {
        try await withSilent { client, names, nodes in
            let other = nodes[1].names("boards")[0]
            for call in 0..<100 { client.call(call, names[call % 8], "caller()", "[]") }
            #expect(await eventually { await nodes[0].held() == 100 })
            client.call(1_000, other, "step()", "[]")
            #expect(await client.answer(1_000) != nil)
            #expect(await nodes[0].held() == 100)
        }
    }
}
