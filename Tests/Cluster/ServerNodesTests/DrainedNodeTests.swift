import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

/// Calls and streams over a connection that a stopping node drains.
@Suite(.timeLimit(.minutes(5))) struct DrainedNodeTests {
    /// Long enough for busy machines: calls are accepted for a fifth of it.
    private static let drain = Duration.seconds(200)

    /// Runs `body` with a client that has answered the ping of its draining node, which does not close the connection yet.
    private func withDrained(_ body: (_ client: TextClient, _ nodes: [Node]) async throws -> Void) async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].textClient()
            client.call("w", nodes[1].names(2)[1], "wait()")
            #expect(await eventually { await nodes[0].server.counters().callsUnderWay == 1 })
            let stopping = Task { await nodes[0].server.shutdown(drain: Self.drain) }
            #expect(await eventually { client.messages.contains { $0.type == "goAway" } })
            #expect(await eventually { await nodes[0].hasReceivedPong })
            try await body(client, nodes)
            client.cancel("w")
            #expect(await eventually { client.answers("w").count == 1 })
            await stopping.value
        }
    }

    @Test("a node without drain time logs that it does not wait until its slots are released")
    func atOnce() async throws {
        let lines = Journal()
        let node = try Node("a", MemoryEngine(), log: ConsoleLog { lines.record($0) }) { _ in }
        try await node.start()
        await ownAll([node])
        await node.server.shutdown(drain: .zero)
        #expect(lines.entries.count { $0.contains("node a stops without time to release its slots") } == 1)
        #expect(!lines.entries.contains { $0.contains("still running") })
        await node.stop()
    }

    @Test("a call sent before the client has seen the goAway is executed")
    func lateCall() async throws {
        try await withDrained { client, nodes in
            let name = nodes[1].names(1)[0]
            client.call("1", name, "add(_:)", [1])
            #expect(await eventually { client.answers("1").count == 1 })
            client.callOnce(2, name, "addOnce(_:)", "[1]")
            #expect(await eventually { client.answers("2").count == 1 })
            #expect(client.messages.allSatisfy { $0.error.isEmpty }, "\(client.texts)")
        }
    }

    @Test("a stream requested before the client has seen the goAway continues over its next connection")
    func lateStreams() async throws {
        try await withDrained { client, nodes in
            let name = nodes[1].names(1)[0]
            client.observe("1", name)
            client.observe("2", name, "observeMarks")
            let seen = #""streamID":"s9","epoch":"e","lastSequence":7"#
            let place = #""actorID":"\#(name)","targetIdentifier":"observeCount""#
            client.send("streamResume", #""callID":"3",\#(place),\#(seen)"#)
            client.send("streamResume", #"\#(place),\#(seen)"#)
            let ends = { client.messages.filter { $0.type == "streamEnd" && $0.text.contains("serverDraining") } }
            #expect(await eventually { ends().count == 4 }, "\(client.texts)")
            #expect(Set(client.starts.map(\.callID)) == ["1", "2", "3"])
            #expect(Set(ends().map(\.streamID)) == Set(client.starts.map(\.streamID) + ["s9"]))
            #expect(client.messages.allSatisfy { $0.error.isEmpty })
            // Events in between arrive over the next connection.
            let next = try await nodes[1].textClient()
            for number in 1...2 { next.call("\(number)", name, "add(_:)", [1]) }
            #expect(await eventually { next.answers("2").count == 1 })
            let marks = try #require(client.starts.first { $0.callID == "2" })
            next.resume(marks, "r", name, behind: marks.sequence, "observeMarks")
            #expect(await eventually { next.versions.map(\.sequence) == [1, 2] }, "\(next.texts)")
            next.abort()
        }
    }
}

extension Node {
    /// A Boolean value that indicates whether the pong of a draining connection has arrived.
    fileprivate var hasReceivedPong: Bool {
        get async {
            for shard in server.shards where await shard.reactor.perform({ shard.lastLateMessage > 0 }) { return true }
            return false
        }
    }
}
