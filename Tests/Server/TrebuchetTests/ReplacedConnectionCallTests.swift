import Bytes
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// Calls that were answered before their methods returned. They keep counting, so that a client cannot run any number of them.
@Suite(.timeLimit(.minutes(5))) struct ReplacedConnectionCallTests {
    private func insist(_ rig: ServerConnectionTests.Rig, _ number: Int, _ more: String = "") async -> [String] {
        await rig.call(number, "waiter", "insist(_:)", "\"\(number)\"", more)
    }

    private func loads(_ rig: ServerConnectionTests.Rig) async -> [Int] {
        await rig.on { [$0.load.count, $0.load.bytes, $0.load.answered, $0.running.count] }
    }

    private func bufferedBytes(_ rig: ServerConnectionTests.Rig) async -> Int {
        await rig.on { $0.calls.memory?.bufferedBytes ?? -1 }
    }

    @Test("timed-out calls count until their methods return", arguments: ["a cancellation", "a time that is over"])
    func limit(reason: String) async {
        let rig = await ServerConnectionTests.Rig { $0.calls.perConnection = 2 }
        for number in 1...2 {
            #expect(await insist(rig, number, #","timeoutMilliseconds":1000"#) == [])
            await rig.journal.wait(for: "\(number) began")
            if reason == "a cancellation" {
                await rig.receive(#"{"type":"cancel","payload":{"callID":"\#(number)"}}"#)
            } else {
                await rig.clock.advance(by: .seconds(1))
            }
            #expect(await eventually { await rig.on { $0.running.isEmpty } })
        }
        #expect(await loads(rig) == [0, 0, 2, 0])
        let bytes = await bufferedBytes(rig)
        #expect(bytes > 0)
        let refused = await insist(rig, 3)
        #expect(refused.count == 1)
        #expect(refused.first?.contains("2 calls of this connection that timed out") == true, "\(refused)")
        #expect(refused.first?.contains(#""code":"rateLimited""#) == true)
        rig.journal.record("1 go")
        #expect(await eventually { await rig.on { $0.load.answered } == 1 })
        #expect(await bufferedBytes(rig) < bytes)
        #expect(await insist(rig, 4) == [])
        for number in [2, 4] { rig.journal.record("\(number) go") }
        #expect(await eventually { await loads(rig) == [0, 0, 0, 0] })
        #expect(await bufferedBytes(rig) == 0)
    }

    @Test("a call that outlives its connection counts its memory until its method returns")
    func closed() async {
        let rig = await ServerConnectionTests.Rig()
        #expect(await insist(rig, 1) == [])
        await rig.journal.wait(for: "1 began")
        let bytes = await bufferedBytes(rig)
        await rig.on { $0.linkDidClose() }
        #expect(await bufferedBytes(rig) == bytes && bytes > 0)
        rig.journal.record("1 go")
        #expect(await eventually { await bufferedBytes(rig) == 0 })
    }

    @Test("an ended call no longer counts, whatever its outcome")
    func ended() async {
        let rig = await ServerConnectionTests.Rig()
        #expect(await insist(rig, 1) == [])
        rig.journal.record("1 go")
        #expect(await rig.waitFor("went on"))
        #expect(await loads(rig) == [0, 0, 0, 0])
        #expect(await bufferedBytes(rig) == 0)
    }
}
