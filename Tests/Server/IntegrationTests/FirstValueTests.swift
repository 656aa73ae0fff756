import Testing
import Trebuchet
import TrebuchetTesting

/// A board on the global pool.
@Trebuchet(executor: .concurrent)
private distributed actor PoolBoard {
    @StreamedState var state: SizedStateActor.State = SizedStateActor.State()

    distributed func add() -> Int {
        state.count += 1
        return state.count
    }
}

/// Streams and calls requested together: the changes of a call are sent before its response.
@Suite(.timeLimit(.minutes(5))) struct FirstValueTests {
    private func withBoards(_ body: (TrebuchetServer) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let system = server.actorSystem
        server.expose(SizedStateActor.self, as: "boards/*") { _ in SizedStateActor(actorSystem: system) }
        for name in ["a", "b"] { await server.expose(SizedStateActor(actorSystem: system), as: name) }
        await server.expose(PoolBoard(actorSystem: system), as: "pool")
        try await server.start()
        try await body(server)
        await server.shutdown(drain: .zero)
    }

    /// Observes and calls in one write. Returns the result, and the last count before it.
    private func observeAndCall(
        _ actor: String, _ server: TrebuchetServer, _ call: @escaping @Sendable (RawPeer) -> Void
    ) async throws -> (result: Int?, seen: Int?) {
        let peer = try await RawPeer.connect(#require(server.address))
        defer { peer.close() }
        await peer.together {
            peer.invoke("o", actor, "observeState")
            call(peer)
        }
        var seen: Int?
        while let message = try await peer.next() {
            if let count = message.payload.data?.count { seen = count }
            if message.type == "response" { return (message.payload.result, seen) }
        }
        return (nil, seen)
    }

    @Test(
        "the response of a call follows the first value of a stream requested before it",
        arguments: ["add()", "addLater()"])
    func onDemand(method: String) async throws {
        try await withBoards { server in
            // Actors of either reactor, called from both.
            for number in 0..<16 {
                let (result, seen) = try await observeAndCall("boards/\(number)", server) {
                    $0.invoke("1", "boards/\(number)", method)
                }
                #expect(result == 1)
                #expect(seen == 1, "the stream has the change before the response")
            }
        }
    }

    @Test("the recorded response of an idempotent call follows the first value, too", arguments: ["boards/", "a", "b"])
    func recordedResponse(actor: String) async throws {
        try await withBoards { server in
            for number in 1...16 {
                let name = actor == "boards/" ? "boards/\(number)" : actor
                let (result, seen) = try await observeAndCall(name, server) { $0.call("1", name, "addOnce()") }
                #expect(result == (actor == "boards/" ? 1 : number))
                #expect(seen == result, "the stream has the change before the response")
            }
        }
    }

    @Test("the response of an actor on the global pool follows the first value, too")
    func pool() async throws {
        try await withBoards { server in
            for number in 1...64 {
                let (result, seen) = try await observeAndCall("pool", server) { $0.invoke("1", "pool", "add()") }
                #expect(result == number)
                #expect(seen == number, "the stream has the change before the response")
            }
        }
    }
}
