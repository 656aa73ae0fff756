import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("The log of changed states")
struct ChangedStreamQueueTests {
    private final class Root {}
    private let roots = (0..<ChangedStreamQueue.longest + 1).map { _ in Root() }

    private func identity(_ index: Int) -> ObjectIdentifier { ObjectIdentifier(roots[index]) }

    @Test("each reader gets the changes since its last read once; repeated changes before a read are one entry")
    func changes() {
        var log = ChangedStreamQueue()
        var (one, other): (UInt64, UInt64) = (0, 0)
        for index in [0, 0, 1, 0] { log.recordChange(identity(index)) }
        #expect(log.changes(since: &one).map(Array.init) == [identity(0), identity(1), identity(0)])
        log.recordChange(identity(0))
        #expect(log.changes(since: &one).map(Array.init) == [identity(0)])
        #expect(log.changes(since: &one).map(Array.init) == [])
        #expect(log.changes(since: &other)?.count == 4)
    }

    @Test("the log is bounded: a reader that is too far behind must check every state, until all have been checked")
    func longest() {
        var log = ChangedStreamQueue()
        var (late, full) = (UInt64(0), UInt64(0))
        for index in 0..<ChangedStreamQueue.longest { log.recordChange(identity(index)) }
        #expect(log.changes(since: &full)?.count == ChangedStreamQueue.longest, "all changes within the limit are kept")
        var seen = full
        log.recordChange(identity(ChangedStreamQueue.longest))
        #expect(log.changes(since: &late) == nil)
        #expect(log.changes(since: &seen).map(Array.init) == [identity(ChangedStreamQueue.longest)])
        #expect(log.changes(since: &late).map(Array.init) == [])
        var newcomer = UInt64(0)
        log.clear(except: [identity(3)])
        #expect(log.changes(since: &newcomer).map(Array.init) == [identity(3)])
    }
}
