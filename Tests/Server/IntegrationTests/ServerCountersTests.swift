import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Trebuchet
private distributed actor LongRunningActor {
    @StreamedState var count: Int = 0
    private let never = StateRelay(false)

    /// Runs until it is cancelled.
    distributed func waitForCancellation() async {
        for await isOver in never.stream where isOver { return }
    }

    distributed func add() { count += 1 }
}

@Suite(.timeLimit(.minutes(5))) struct ServerCountersTests {
    @Test("a server counts its activities, and nothing once its client has gone")
    func counts() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let system = server.actorSystem
        let gate = StateRelay(false)
        await server.expose(LongRunningActor(actorSystem: system), as: "loiterer")
        server.expose(LongRunningActor.self, as: "late/*") { _ in
            for await isOpen in gate.stream where isOpen { break }
            return LongRunningActor(actorSystem: system)
        }
        let peer = try await RawPeer.connect(try await server.start())
        peer.invoke("a1", "loiterer", "waitForCancellation()")
        peer.invoke("a2", "loiterer", "observeCount")
        peer.invoke("a3", "late/1", "add()")

        var counters = ServerCounters()
        func becomes(_ isRight: (ServerCounters) -> Bool) async -> Bool {
            await eventually {
                counters = await server.counters()
                return isRight(counters)
            }
        }
        let isCounted = await becomes {
            $0.connections == 1 && $0.callsUnderWay >= 1 && $0.streams == 1 && $0.broadcasters == 1
                && $0.actorsOnDemand == 1
                && $0.activations == 1 && $0.timers >= 1 && ($0.callsWaiting == 1 || $0.callsUnderWay == 2)
        }
        #expect(isCounted, "\(counters)")
        gate.update(true)
        #expect(await becomes { $0.activations == 0 && $0.callsWaiting == 0 && $0.callsUnderWay == 1 }, "\(counters)")
        peer.abort()
        #expect(
            await becomes { $0.connections == 0 && $0.callsUnderWay == 0 && $0.streams == 0 && $0.broadcasters == 0 },
            "\(counters)")
        await server.shutdown(drain: .zero)
    }
}
