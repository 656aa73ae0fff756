import Bytes
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct BacklogTests {
    private func update(_ sequence: UInt64, bytes: Int = 10) -> StateUpdate {
        let suffix = [UInt8](repeating: 0x20, count: bytes).withUnsafeBytes { SharedBytes($0) }
        return StateUpdate(sequence: sequence, current: suffix, patch: nil, wholeByteCount: bytes)
    }

    private func numbers(_ updates: ArraySlice<StateUpdate>?) -> [UInt64]? { updates?.map(\.sequence) }

    @Test("who is behind by no more than the limit gets all that is missing; who is further behind gets nothing")
    func reach() {
        var backlog = Backlog(limit: 3, position: 10)
        #expect(numbers(backlog.updates(after: 10)) == [])
        #expect(backlog.updates(after: 9) == nil)
        for sequence in 11...200 as ClosedRange<UInt64> {
            backlog.append(update(sequence))
            #expect(numbers(backlog.updates(after: sequence)) == [])
            let kept = min(3, sequence - 10)
            #expect(numbers(backlog.updates(after: sequence - kept)) == Array((sequence - kept + 1)...sequence))
            #expect(backlog.updates(after: sequence - kept - 1) == nil)
        }
    }

    @Test("after a gap nothing from before it counts")
    func gap() {
        var backlog = Backlog(limit: 8, position: 0)
        for sequence in [1, 2, 3, 7, 8] as [UInt64] { backlog.append(update(sequence)) }
        #expect(numbers(backlog.updates(after: 6)) == [7, 8])
        #expect(backlog.updates(after: 3) == nil)
    }

    @Test("no more bytes are kept than allowed, but the newest update always is")
    func bytes() {
        var backlog = Backlog(limit: 100, position: 0)
        for sequence in 1...10 as ClosedRange<UInt64> { backlog.append(update(sequence, bytes: Backlog.mostBytes / 4)) }
        #expect(backlog.count == 4)
        backlog.append(update(11, bytes: Backlog.mostBytes * 2))
        #expect(numbers(backlog.updates(after: 10)) == [11])
        #expect(backlog.count == 1)
    }
}
