import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetActors

/// Streams of several nodes' clients that an operator ends at the owner of their actor.
@Suite(.timeLimit(.minutes(5))) struct OperatorEndedNodesTests {
    @Test("clients of all nodes receive the reason and the delay, in streams that nodes share and in forwarded ones")
    func ended() async throws {
        try await withNodes(["a", "b"]) { (nodes) async throws in
            let name = nodes[1].names(1)[0]
            var clients: [TextClient] = []
            for node in nodes { clients.append(try await node.textClient()) }
            for client in clients {
                client.observe("1", name)
                client.observe("2", name, "observeMarks")
                client.call(3, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            }
            #expect(await eventually { clients.allSatisfy { Set($0.starts.map(\.callID)) == ["1", "2", "3"] } })
            clients[0].call("4", name, "add(_:)", [1])
            // Each stream has delivered the change, so it exists at the owner.
            #expect(
                await eventually {
                    clients.allSatisfy { client in
                        let streams = Set(client.versions.filter { $0.text.contains(#""data":1"#) }.map(\.streamID))
                        return streams == Set(client.starts.map(\.streamID))
                    }
                })

            let error = TrebuchetError(.unavailable, "maintenance until 14:00", retryAfter: .seconds(600))
            await #expect(throws: TrebuchetError.self) { try await nodes[0].server.endStreams(of: name, with: error) }
            #expect(try await nodes[1].server.endStreams(of: name, with: error))
            for client in clients {
                let ends = { client.messages.filter { $0.type == "streamError" } }
                #expect(await eventually { ends().count == 3 })
                #expect(Set(ends().map(\.streamID)) == Set(client.starts.map(\.streamID)))
                for end in ends() {
                    #expect(end.error == "unavailable" && end.text.contains(#""maintenance until 14:00""#))
                    #expect(end.text.contains(#""retryAfterMilliseconds":600000"#), "\(end.text)")
                }
                client.observe("5", name)
                #expect(
                    await eventually {
                        guard let start = client.starts.first(where: { $0.callID == "5" }) else { return false }
                        let versions = client.versions.filter { $0.streamID == start.streamID }
                        return versions.last?.text.contains(#""data":1"#) == true
                    })
                #expect(ends().count == 3)
                client.abort()
            }
        }
    }
}
