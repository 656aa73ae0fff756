import Networking
import Platform
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct ServerCrashTests {
    @Test("when kill() returns, all connections are closed at the server, and new ones are refused")
    func sockets() async throws {
        try await withTestServer(reactors: 2) { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { (test: TestServer) async throws in
            let peers = (0..<20).map { _ in PlainSocket(test.address) }
            for peer in peers {
                peer.send(Array(PlainSocket.upgrade.utf8))
                #expect(await onThread { peer.receives(status: 101) })
            }
            await test.kill()
            for peer in peers { #expect(peer.hasEnded) }
            let error = await #expect(throws: TransportError.self) { _ = try await RawPeer.connect(test.address) }
            #expect(error?.code == .refused)
            for peer in peers { peer.close(reset: false) }
        }
    }
}
