import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

/// The responses to calls that have not completed when a stopping server closes their connections.
@Suite(.timeLimit(.minutes(5))) struct LastAnswersTests {
    private func error(_ callID: String, of client: TextClient) -> String? { client.answers(callID).first?.error }

    private func isClosed(_ client: TextClient) async -> Bool {
        await eventually { client.texts.last?.hasPrefix("closed") == true }
    }

    @Test("calls and pending streams of a server are answered before their connection is closed")
    func alone() async throws {
        let store = ControllableStore()
        let server = TrebuchetServer(transport: .webSocket(port: 0), reactors: 2, store: store, log: nil)
        let system = server.actorSystem
        await server.expose(Tally(actorSystem: system), as: "own")
        server.expose(Tally.self, as: "mine/*") { _ in Tally(actorSystem: system) }
        // Some of its clients are on the actor's reactor, the others are not.
        var clients: [TextClient] = []
        let address = try await server.start()
        for _ in 0..<4 { clients.append(try await TextClient(address)) }
        store.set { ($0.holdsReads, $0.holdsWrites) = (true, true) }
        for client in clients {
            client.call("written", "own", "add(_:)", [1])
            client.call("running", "own", "wait()")
            client.callOnce(1, "own", "addOnce(_:)", "[1]")
            client.call("unmade", "mine/x", "add(_:)", [1])
            client.observe("unmade stream", "mine/x")
        }
        #expect(await eventually { await server.counters().callsUnderWay == 20 })
        let stopping = Task { await server.shutdown(drain: .milliseconds(500)) }
        for client in clients {
            #expect(await isClosed(client))
            for call in ["written", "running"] {
                #expect(error(call, of: client) == "unknownOutcome", "\(client.texts)")
            }
            for call in ["unmade", "unmade stream"] {
                #expect(error(call, of: client) == "unavailable", "\(client.texts)")
            }
            // Its client repeats it.
            #expect(client.answers("1").isEmpty)
            #expect(client.texts.last?.contains("1001") == true || client.texts.last?.contains("goingAway") == true)
        }
        store.set { $0 = .init() }
        await stopping.value
    }

    @Test("a node stops in time while the coordination store is unavailable, and answers waiting calls")
    func engineAway() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let node = try Node("a", engine, through: engineRoute)
        try await Node.with([node]) {
            let client = try await node.textClient()
            client.call(1, "tallies/x", "add(_:)", "[1]")
            #expect(await client.answer(1) != nil)
            engineRoute.set { $0.isAway = true }
            client.call(2, "tallies/x", "add(_:)", "[1]")
            client.call(3, "tallies/x", "wait()", "[]")
            #expect(await eventually { await node.server.counters().callsUnderWay == 2 })
            let began = ContinuousClock.now
            await node.server.shutdown(drain: .seconds(2))
            // Formerly it took as long as the leases, twice.
            #expect(ContinuousClock.now - began < Node.settings.leaseDuration)
            #expect(await isClosed(client))
            for call in ["2", "3"] { #expect(error(call, of: client) == "unknownOutcome", "\(client.texts)") }
            engineRoute.set { $0.isAway = false }
        }
    }

    @Test(
        "a call in flight at another node is answered; an @Idempotent one is answered by the next node that it is repeated at"
    )
    func elsewhere() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].textClient()
            let (tally, till) = (nodes[1].names(1)[0], nodes[1].names("tills")[0])
            client.call("w", tally, "wait()")
            client.callOnce(1, till, "hold(_:)", #"["lastAnswers"]"#)
            #expect(await eventually { await nodes[1].server.counters().callsUnderWay == 2 })
            await nodes[0].server.shutdown(drain: .milliseconds(300))
            #expect(await isClosed(client))
            #expect(error("w", of: client) == "unknownOutcome", "\(client.texts)")
            #expect(client.answers("1").isEmpty)
            let next = try await nodes[1].textClient()
            next.repeat(1, till, "hold(_:)", #"["lastAnswers"]"#, of: client.session)
            PaymentLog.shared.release("lastAnswers")
            #expect(await next.answer(1)?.contains("lastAnswers") == true)
            #expect(PaymentLog.shared.count("lastAnswers") == 1)
            next.abort()
        }
    }

    @Test("a call that has not started at a stopping node is executed at the next owner")
    func notBegun() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [try Node("a", engine), try Node("b", engine, through: engineRoute)]
        try await Node.with(nodes) {
            let client = try await nodes[0].textClient()
            let tally = nodes[1].names(1)[0]
            engineRoute.set { $0.hangsReads = true }
            client.call(1, tally, "add(_:)", "[1]")
            #expect(await eventually { engineRoute.readCount == 1 })
            await nodes[1].server.shutdown(drain: .milliseconds(300))
            engineRoute.set { $0.hangsReads = false }
            try await nodes[1].kill()
            let answer = try #require(await client.answer(1))
            #expect(answer.contains(#""result":1"#), "\(client.texts)")
            client.abort()
        }
    }
}
