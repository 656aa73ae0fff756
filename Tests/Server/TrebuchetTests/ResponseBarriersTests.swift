import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

@Suite(.timeLimit(.minutes(5))) struct ResponseBarriersTests {
    /// The responses that were sent. Used on one reactor.
    private final class Sent {
        var numbers: [Int] = []
    }

    private func withBarriers(_ body: @escaping @Sendable (ResponseBarriers, Sent, ServerShard) -> Void) async {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            body(ResponseBarriers(on: connection.shard.reactor), Sent(), connection.shard)
        }
    }

    @Test("responses are sent in order when they are ready, each connection for itself")
    func ready() async {
        await withBarriers { barriers, sent, shard in
            let (one, other) = (shard.newConnectionName(), shard.newConnectionName())
            for number in 1...4 {
                let barrier = ResponseBarrier(number % 2 == 0 ? .of(ActorName("a")) : .none, 10) {
                    sent.numbers.append(number)
                }
                barriers.append(barrier, of: one, for: .seconds(60))
            }
            barriers.append(ResponseBarrier(.none, 0) { sent.numbers.append(5) }, of: other, for: .seconds(60))
            #expect(barriers.count == 5 && barriers.hasResponses(of: one) && barriers.hasResponses(of: other))
            let ready = barriers.removeReady(of: one) { if case .none = $0.awaited { true } else { false } }
            for barrier in ready { barrier.sendResponse() }
            #expect(sent.numbers == [1, 3] && barriers.count == 3)
            for barrier in barriers.removeReady(of: one, where: { _ in true }) { barrier.sendResponse() }
            #expect(sent.numbers == [1, 3, 2, 4])
            #expect(!barriers.hasResponses(of: one) && barriers.count == 1 && !barriers.isEmpty)
            barriers.removeReady(of: other, where: { _ in true }).first?.drop()
            #expect(sent.numbers.count == 4 && barriers.isEmpty)
        }
    }

    @Test("a response that was sent or dropped is forgotten, and none is sent twice")
    func ended() async {
        await withBarriers { barriers, sent, shard in
            let name = shard.newConnectionName()
            let all = (1...3).map { number in ResponseBarrier(.none, 0) { sent.numbers.append(number) } }
            for barrier in all { barriers.append(barrier, of: name, for: .seconds(60)) }
            for _ in 1...2 { all[1].sendResponse() }
            all[0].drop()
            all[0].sendResponse()
            #expect(sent.numbers == [2] && barriers.count == 1)
            all[2].sendResponse()
            #expect(sent.numbers == [2, 3] && barriers.isEmpty && !barriers.hasResponses(of: name))
        }
    }

    @Test("a response waits for its time at most")
    func limit() async {
        let rig = await ServerConnectionTests.Rig()
        let barriers = await rig.on { connection in
            let barriers = ResponseBarriers(on: connection.shard.reactor)
            barriers.append(ResponseBarrier(.none, 0) {}, of: connection.name, for: .seconds(1_000))
            return LoopBound(barriers, on: connection.shard.reactor)
        }
        await rig.clock.advance(by: .seconds(900))
        #expect(await rig.on { _ in barriers.value.count } == 1)
        await rig.clock.advance(by: .seconds(100))
        #expect(await eventually { await rig.on { _ in barriers.value.isEmpty } })
    }
}
