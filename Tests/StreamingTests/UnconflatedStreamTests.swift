import Bytes
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("The log of a stream that leaves nothing out") struct UnconflatedStreamTests {
    private func update(_ sequence: UInt64, bytes: Int = 10) -> StateUpdate {
        let suffix = [UInt8](repeating: 0x20, count: bytes).withUnsafeBytes { SharedBytes($0) }
        return StateUpdate(sequence: sequence, current: suffix, patch: nil, snapshotByteCount: bytes)
    }

    private func numbers(_ updates: ArraySlice<StateUpdate>?) -> [UInt64]? { updates?.map(\.sequence) }

    @Test("who is behind by no more than the limit gets all that is missing; who is further behind gets nothing")
    func reach() {
        var log = VersionLog(keepingEach: 3, position: 10)
        #expect(numbers(log.updates(since: 10)) == [])
        #expect(log.updates(since: 9) == nil)
        for sequence in 11...200 as ClosedRange<UInt64> {
            log.append(update(sequence))
            #expect(numbers(log.updates(since: sequence)) == [])
            let kept = min(3, sequence - 10)
            #expect(numbers(log.updates(since: sequence - kept)) == Array((sequence - kept + 1)...sequence))
            #expect(log.updates(since: sequence - kept - 1) == nil)
        }
    }

    @Test("after a gap nothing from before it counts")
    func gap() {
        var log = VersionLog(keepingEach: 8, position: 0)
        for sequence in [1, 2, 3, 7, 8] as [UInt64] { log.append(update(sequence)) }
        #expect(numbers(log.updates(since: 6)) == [7, 8])
        #expect(log.updates(since: 3) == nil)
    }

    @Test("the log of an earlier moment has what was there then, and goes on from it")
    func asOf() {
        var log = VersionLog(keepingEach: 3, position: 10)
        for sequence in 11...14 as ClosedRange<UInt64> { log.append(update(sequence)) }
        #expect(numbers(log.asOf(14).updates(since: 11)) == [12, 13, 14])
        var earlier = log.asOf(12)
        #expect(earlier.position == 12)
        #expect(numbers(earlier.updates(since: 11)) == [12])
        #expect(numbers(earlier.updates(since: 12)) == [])
        #expect(earlier.updates(since: 10) == nil)
        earlier.append(update(13))
        #expect(numbers(earlier.updates(since: 11)) == [12, 13])
        // Of the time before what is kept nothing is there.
        #expect(log.asOf(9).count == 0)
        #expect(log.asOf(9).position == 9)
        #expect(log.asOf(9).updates(since: 8) == nil)
    }

    @Test(
        "a log that goes on from another life keeps nine times the limit, until it has as many new versions as eight times"
    )
    func returning() {
        var log = VersionLog(keepingEach: 3, position: 10)
        log.append(update(11))
        log.expectReturns()
        for sequence in 12...35 as ClosedRange<UInt64> { log.append(update(sequence)) }
        #expect(log.asOf(35).count == 25 && numbers(log.updates(since: 10)) == Array(11...35))
        log.append(update(36))
        #expect(log.count == 3)
        // Large ones are not kept beyond the limit.
        log.expectReturns()
        for sequence in 37...42 as ClosedRange<UInt64> {
            log.append(update(sequence, bytes: VersionLog.returningBytes / 4))
        }
        #expect(log.count == 4)
    }

    @Test("who asks for more to be kept than there may be gets as much as there may be, at the next owner too")
    func greatestBuffers() {
        var log = VersionLog(keepingEach: .max, position: .max - 2)
        log.append(update(.max - 1))
        log.expectReturns()
        log.append(update(.max))
        #expect(log.count == 2)
        let buffers = [Int.min, 0, 1, 256, 1 << 20, .max].map { StreamDelivery.room(for: $0) }
        #expect(buffers == [1, 1, 1, 256, 1 << 20, 1 << 20])
        // Where a reader keeps as many as come at once beside those that it has not read.
        let moves = EventObservation<TodoList, Int>(
            TodoList(actorSystem: TrebuchetServer(transport: .webSocket(port: 0)).actorSystem), "observeMoves",
            buffer: .max, persisted: true, keeping: .max)
        #expect(moves.name == "observeMoves")
    }

    @Test("no more bytes are kept than allowed, but the newest update always is")
    func bytes() {
        var log = VersionLog(keepingEach: 100, position: 0)
        for sequence in 1...10 as ClosedRange<UInt64> {
            log.append(update(sequence, bytes: VersionLog.maximumBytes / 4))
        }
        #expect(log.count == 4)
        log.append(update(11, bytes: VersionLog.maximumBytes * 2))
        #expect(numbers(log.updates(since: 10)) == [11])
        #expect(log.count == 1)
    }

    @Test("what is forgotten is let go of before it is more than a quarter of what may be kept")
    func released() {
        var log = VersionLog(keepingEach: 1_000)
        weak var first: StateUpdate?
        for sequence in 1...8 as ClosedRange<UInt64> {
            let made = update(sequence, bytes: VersionLog.maximumBytes / 3)
            if sequence == 1 { first = made }
            log.append(made)
        }
        #expect(log.count == 3)
        #expect(first == nil)
    }
}
