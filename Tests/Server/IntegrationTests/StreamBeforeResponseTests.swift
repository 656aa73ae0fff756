import TestSupport
import Testing
import Trebuchet

/// Resumed streams and repeated calls over one new connection.
@Suite(.timeLimit(.minutes(5))) struct StreamBeforeResponseTests {
    private struct Scene {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let journal = Journal()

        init() async throws {
            // One on each reactor.
            for name in ["a", "b"] {
                await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: name)
            }
            try await server.start()
        }

        func peer(onReactor index: UInt64) async throws -> RawPeer {
            while true {
                let peer = try await RawPeer.connect(#require(server.address))
                if peer.reactorIndex == index { return peer }
                peer.close()
            }
        }
    }

    private static func resumeMessage(_ streamID: String, _ actor: String, filter: String = "") -> String {
        #"{"type":"streamResume","payload":{"streamID":"\#(streamID)","callID":"\#(streamID)","actorID":"\#(actor)","#
            + #""targetIdentifier":"observeState","epoch":"","lastSequence":0\#(filter)}}"#
    }

    /// The response of a call, and the last state before it.
    private func answer(_ callID: String, _ peer: RawPeer) async throws -> (result: Int?, seen: Int?) {
        var seen: Int?
        while let message = try await peer.next() {
            if message.type == "streamData" { seen = message.payload.data?.count }
            if message.type == "response", message.payload.callID == callID { return (message.payload.result, seen) }
        }
        return (nil, seen)
    }

    private static let places: [[UInt64]] = [[0, 0], [0, 1], [1, 0], [1, 1]]

    @Test("the response of a repeated call follows the streams that show its changes", arguments: ["a", "b"], places)
    func answered(actor: String, reactors: [UInt64]) async throws {
        let scene = try await Scene()
        for round in 1...20 {
            let first = try await scene.peer(onReactor: reactors[0])
            first.call("1", actor, "addOnce()")
            #expect(try await answer("1", first).result == round)
            let second = try await scene.peer(onReactor: reactors[1])
            let session = first.session
            await second.together {
                second.send(Self.resumeMessage("s1", actor))
                second.call("1", actor, "addOnce()", of: session)
            }
            let (result, seen) = try await answer("1", second)
            #expect(result == round)
            #expect(seen == round, "the stream has the change before the response")
            second.abort()
        }
        await scene.server.shutdown(drain: .zero)
    }

    @Test("the response of a call that was still running follows the streams, too", arguments: ["a", "b"], places)
    func running(actor: String, reactors: [UInt64]) async throws {
        let scene = try await Scene()
        for round in 1...10 {
            let first = try await scene.peer(onReactor: reactors[0])
            first.call("1", actor, "countOnce(_:)", #"["\#(round)"]"#)
            await scene.journal.wait(for: "\(round) began")
            let second = try await scene.peer(onReactor: reactors[1])
            let session = first.session
            await second.together {
                second.send(Self.resumeMessage("s1", actor))
                second.call("1", actor, "countOnce(_:)", #"["\#(round)"]"#, of: session)
            }
            scene.journal.record("\(round) go")
            let (result, seen) = try await answer("1", second)
            #expect(result == round)
            #expect(seen == round, "the stream has the change before the response")
            second.abort()
        }
        await scene.server.shutdown(drain: .zero)
    }

    @Test("streams that send nothing, or do not start, block no response", arguments: ["a", "b"], places)
    func nothingToShow(actor: String, reactors: [UInt64]) async throws {
        let scene = try await Scene()
        let first = try await scene.peer(onReactor: reactors[0])
        first.call("1", actor, "addOnce()")
        #expect(try await answer("1", first).result == 1)
        let second = try await scene.peer(onReactor: reactors[1])
        let session = first.session
        await second.together {
            second.send(
                Self.resumeMessage("s1", actor, filter: #","filter":{"where":{"path":"/count","op":"gt","value":9}}"#))
            second.send(Self.resumeMessage("s2", actor, filter: #","filter":{"path":"/nowhere"}"#))
            second.send(Self.resumeMessage("s3", "nobody"))
            second.call("1", actor, "addOnce()", of: session)
        }
        #expect(try await answer("1", second).result == 1)
        second.abort()
        await scene.server.shutdown(drain: .zero)
    }
}
