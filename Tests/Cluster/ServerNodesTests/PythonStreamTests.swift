import NodeSupport
import ServicesPython
import TestSupport
import Testing
import Trebuchet

/// A client written from Docs/Reference/Protocol.md, and streams whose actors move to another node.
@Suite(.timeLimit(.minutes(5))) struct PythonStreamTests {
    @Test(
        "a client in Python follows a stream to the next owner of its actor, with its new stream ID",
        arguments: [true, false])
    func moved(inOrder: Bool) async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let name = nodes[1].names(1)[0]
            let script = try #require(ServicesPython.path(of: "follow"))
            let (url, client) = (try nodes[0].address, try await nodes[2].client())
            let tally = try client.resolve(Tally.self, id: name)
            let follower = try ChildProcess(
                ServicesPython.interpreter, [script, "ws://\(url.host):\(url.port)", name, "observeCount", "3"],
                error: .merged)
            #expect(await follower.nextLine() == "0")
            #expect(try await tally.addOnce(1) == 1)
            #expect(await follower.nextLine() == "1")
            if inOrder { await nodes[1].server.shutdown() } else { try await nodes[1].kill() }
            #expect(try await tally.addOnce(1) == 2)
            #expect(await follower.nextLine() == "2")
            #expect(try await tally.addOnce(1) == 3)
            #expect(await follower.nextLine() == "3")
            let outcome = await follower.finish()
            #expect(outcome.status == 0, "\(outcome.output)")
        }
    }
}
