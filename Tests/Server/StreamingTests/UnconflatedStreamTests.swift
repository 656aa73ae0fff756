import Bytes
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("The log of a stream without conflation") struct UnconflatedStreamTests {
    private func update(_ sequence: UInt64, bytes: Int = 10) -> StateUpdate {
        let suffix = [UInt8](repeating: 0x20, count: bytes).withUnsafeBytes { SharedBytes($0) }
        return StateUpdate(sequence: sequence, current: suffix, patch: nil, snapshotByteCount: bytes)
    }

    private func numbers(_ updates: ArraySlice<StateUpdate>?) -> [UInt64]? { updates?.map(\.sequence) }

    @Test("a subscriber within the limit gets all missing updates, and one further behind gets none")
    func reach() {
        var log = VersionLog(keepingEach: 3, position: 10)
        #expect(numbers(log.updates(since: 10)) == [])
        #expect(log.updates(since: 9) == nil)
        for sequence in 11...200 as ClosedRange<UInt64> {
            log.append(update(sequence))
            #expect(numbers(log.updates(since: sequence)) == [])
            let retainedCount = min(3, sequence - 10)
            #expect(
                numbers(log.updates(since: sequence - retainedCount))
                    == Array((sequence - retainedCount + 1)...sequence))
            #expect(log.updates(since: sequence - retainedCount - 1) == nil)
        }
    }

    @Test("after a gap the updates before it are not used")
    func gap() {
        var log = VersionLog(keepingEach: 8, position: 0)
        for sequence in [1, 2, 3, 7, 8] as [UInt64] { log.append(update(sequence)) }
        #expect(numbers(log.updates(since: 6)) == [7, 8])
        #expect(log.updates(since: 3) == nil)
    }

    @Test("the log as of an earlier position has the updates up to it, and continues from it")
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
        // Before the retained updates the log is empty.
        #expect(log.asOf(9).count == 0)
        #expect(log.asOf(9).position == 9)
        #expect(log.asOf(9).updates(since: 8) == nil)
    }

    @Test(
        "a log that continues from another incarnation retains nine times its limit, until it has eight times as many new versions"
    )
    func returning() {
        var log = VersionLog(keepingEach: 3, position: 10)
        log.append(update(11))
        log.expectReturns()
        for sequence in 12...35 as ClosedRange<UInt64> { log.append(update(sequence)) }
        #expect(log.asOf(35).count == 25 && numbers(log.updates(since: 10)) == Array(11...35))
        log.append(update(36))
        #expect(log.count == 3)
        // Large updates are not retained beyond the limit.
        log.expectReturns()
        for sequence in 37...42 as ClosedRange<UInt64> {
            log.append(update(sequence, bytes: VersionLog.returningBytes / 4))
        }
        #expect(log.count == 4)
    }

    @Test("a request to retain more than the maximum gets the maximum, also at the next owner")
    func greatestBuffers() {
        var log = VersionLog(keepingEach: .max, position: .max - 2)
        log.append(update(.max - 1))
        log.expectReturns()
        log.append(update(.max))
        #expect(log.count == 2)
        let buffers = [Int.min, 0, 1, 256, 1 << 20, .max].map { StreamDelivery.room(for: $0) }
        #expect(buffers == [1, 1, 1, 256, 1 << 20, 1 << 20])
        // A reader that keeps as many events as can arrive at once beside its unread ones.
        let moves = EventObservation<TodoList, Int>(
            TodoList(actorSystem: TrebuchetServer(transport: .webSocket(port: 0)).actorSystem), "observeMoves",
            buffer: .max, persisted: true, keeping: .max)
        #expect(moves.name == "observeMoves")
    }

    @Test("the retained bytes are limited, but the latest update is always retained")
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

    @Test("dropped updates are released before they exceed a quarter of the limit")
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
