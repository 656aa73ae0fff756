import Bytes
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("The retained updates of a stream") struct StreamUnitTests {
    private func bytes(_ count: Int) -> SharedBytes {
        [UInt8](repeating: 0x20, count: count).withUnsafeBytes { SharedBytes($0) }
    }

    private func update(_ sequence: UInt64, patch: Int? = nil, base: UInt64? = nil, whole: Int = 1_000) -> StateUpdate {
        StateUpdate(
            sequence: sequence, current: bytes(whole),
            patch: patch.map { .init(base: base ?? sequence - 1, sequence: sequence, suffix: bytes($0)) },
            snapshotByteCount: whole)
    }

    private func steps(_ history: VersionLog, since sequence: UInt64) -> [UInt64]? {
        history.updates(since: sequence)?.map(\.sequence)
    }

    @Test("consecutive deltas lead from a version to the latest one")
    func history() {
        var history = VersionLog()
        #expect(steps(history, since: 0) == [])
        for sequence in 2...4 as ClosedRange<UInt64> { history.append(update(sequence, patch: 10)) }
        #expect(steps(history, since: 3) == [4])
        #expect(steps(history, since: 1) == [2, 3, 4])
        #expect(steps(history, since: 0) == nil)
        #expect(steps(history, since: 4) == [])
        // A delta from another version makes the earlier ones useless.
        history.append(update(7, patch: 10, base: 5))
        #expect(steps(history, since: 5) == [7])
        #expect(steps(history, since: 3) == nil)
        // A snapshot restarts the log.
        history.append(update(8))
        #expect(steps(history, since: 5) == nil && steps(history, since: 7) == nil)
        history.append(update(9, patch: 10))
        #expect(steps(history, since: 8) == [9])
    }

    @Test("64 deltas are retained, with at most as many bytes as the value has")
    func bounds() {
        var history = VersionLog()
        for sequence in 1...65 as ClosedRange<UInt64> { history.append(update(sequence, patch: 1)) }
        #expect(steps(history, since: 1)?.count == 64)
        #expect(steps(history, since: 0) == nil)
        var large = VersionLog()
        for sequence in 1...10 as ClosedRange<UInt64> { large.append(update(sequence, patch: 250)) }
        #expect(steps(large, since: 6)?.count == 4)
        #expect(steps(large, since: 5) == nil)
        large.append(update(11, patch: 251))
        #expect(steps(large, since: 8)?.count == 3)
        #expect(steps(large, since: 7) == nil)
        large.append(update(12, patch: 1_001))
        #expect(steps(large, since: 11) == nil)
    }

    @Test(
        "the updates of a turn are retained until there are too many, then only the latest one",
        arguments: [
            (66, 10, 66), (67, 10, 1), (4, 64 << 10, 4), (5, 64 << 10, 1), (1, 1 << 20, 1),
        ])
    func fresh(count: Int, size: Int, retained: Int) {
        var fresh = TurnUpdates()
        for number in 1...count { fresh.append(update(UInt64(number), whole: size)) }
        #expect(fresh.updates.count == retained)
        #expect(fresh.updates.last?.sequence == UInt64(count))
        fresh.removeAll()
        #expect(fresh.updates.isEmpty)
        for number in 1...4 { fresh.append(update(UInt64(number), whole: 64 << 10)) }
        #expect(fresh.updates.count == 4)
    }

    @Test("updates of a turn received by all subscribers are dropped to make room for others")
    func freshOnes() {
        var fresh = TurnUpdates()
        for number in 1...200 as ClosedRange<UInt64> {
            fresh.append(update(number, whole: 1 << 10))
            if number.isMultiple(of: 20) { fresh.removeAll(upTo: number - 20) }
            #expect(fresh.updates.first.map { Int($0.sequence) } == max(1, Int(number) / 20 * 20 - 19))
        }
        fresh.removeAll(upTo: 190)
        #expect(fresh.updates.map(\.sequence) == Array(191...200))
        fresh.removeAll(upTo: 300)
        #expect(fresh.updates.isEmpty)
    }

    @Test("an update's size is that of the sent form, and it is large when its value is not retained with each delta")
    func sizes() {
        #expect(update(1, whole: 500).byteCount == 500)
        #expect(update(1, patch: 20, whole: 500).byteCount == 20)
        #expect(!update(1, whole: 1 << 20).isLargePatch)
        #expect(!update(1, patch: 1, whole: 8 << 10).isLargePatch)
        #expect(update(1, patch: 1, whole: (8 << 10) + 1).isLargePatch)
        let without = update(3, patch: 1, whole: 9_000).withoutSnapshot
        #expect(
            without.current == nil && without.patch != nil && without.snapshotByteCount == 9_000
                && without.sequence == 3)
        let none = update(1, patch: 2, whole: 5).withoutText
        #expect(none.current == nil && none.patch == nil && none.byteCount == 0 && none.sequence == 1)
    }

    @Test("a log of one update retains the latest one; a log of none retains one as well")
    func oneUpdate() {
        for limit in [0, 1, 2] {
            var backlog = VersionLog(keepingEach: limit)
            for sequence in 1...200 as ClosedRange<UInt64> {
                backlog.append(update(sequence))
                #expect(backlog.count == min(Int(sequence), max(1, limit)))
                #expect(backlog.position == sequence)
            }
            #expect(backlog.updates(since: 199)?.map(\.sequence) == [200])
            #expect((backlog.updates(since: 198) == nil) == (limit < 2))
            #expect(backlog.updates(since: 200)?.isEmpty == true && backlog.updates(since: 500)?.isEmpty == true)
            backlog.discardVersions()
            #expect(backlog.count == 0 && backlog.updates(since: 199) == nil)
        }
    }

    @Test("a source is retained for the longest requested time, and not without a request")
    func memory() {
        let memory = ResumeRetention()
        #expect(!memory.isRetained(on: nil) && !memory.isRetained(at: 0))
        memory.extend(for: .seconds(2), at: 1_000_000_000)
        #expect(memory.isRetained(at: 2_999_999_999) && !memory.isRetained(at: 3_000_000_000))
        memory.extend(for: .seconds(1), at: 1_000_000_000)
        #expect(memory.isRetained(at: 2_999_999_999))
        memory.extend(for: .seconds(5), at: 1_000_000_000)
        #expect(memory.isRetained(at: 5_999_999_999) && !memory.isRetained(at: 6_000_000_000))
        memory.extend(for: .seconds(3_600), on: nil)
        #expect(memory.isRetained(on: nil))
    }

    @Test("the clock is read once in 64 KiB, and one large value takes the whole slice")
    func sliceOfBytes() {
        var slice = FlushBudget()
        slice.didSend(1, bytes: 4_000_000)
        #expect(slice.isOver)
        slice = FlushBudget()
        slice.didSend(1, bytes: 64 << 10)
        #expect(!slice.isOver)
        let begun = ContinuousClock.now
        while ContinuousClock.now - begun < .milliseconds(3) {}
        slice.didSend(1, bytes: 65_535)
        #expect(!slice.isOver, "nobody has looked")
        slice.didSend(1, bytes: 1)
        #expect(slice.isOver)
    }

    @Test("the clock is looked at once in 64 sends, each of which counts with its messages")
    func slice() {
        var slice = FlushBudget()
        // Far fewer sends than take a millisecond.
        for _ in 0..<10 { slice.didSend(5, bytes: 0) }
        #expect(!slice.isOver)
        slice.didSend(3, bytes: 0)
        #expect(!slice.isOver)
        let begun = ContinuousClock.now
        while ContinuousClock.now - begun < .milliseconds(3) {}
        for _ in 0..<63 { slice.didSend(0, bytes: 0) }
        #expect(!slice.isOver, "the clock has not been read")
        slice.didSend(0, bytes: 0)
        #expect(slice.isOver)
    }
}
