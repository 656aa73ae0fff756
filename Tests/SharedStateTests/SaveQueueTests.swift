import Testing

@testable import SharedState

struct SaveQueueTests {
    @Test("one hands over at a time, and finds what others left")
    func handOver() {
        var queue = SaveQueue()
        let isFirst = queue.add(.didSet, nil)
        let first = queue.next()
        let isSecond = queue.add(.didSet, nil)
        let left = queue.next()
        let none = queue.next()
        let isFirstAgain = queue.add(.didSet, nil)
        #expect([isFirst, isSecond, isFirstAgain] == [true, false, true])
        #expect([first, left, none].map { $0 != nil } == [true, true, false])
    }

    @Test("wishes that wait become one save, for all who wait, and explicit if one of them was")
    func merge() {
        var queue = SaveQueue()
        _ = queue.add(.didSet, nil)
        _ = queue.next()
        _ = queue.add(.userInitiated) { _ in }
        _ = queue.add(.didSet) { _ in }
        let save = queue.next()
        #expect(save?.context == .userInitiated)
        #expect(save?.waiters.count == 2)
        let none = queue.next()
        #expect(none == nil)
    }
}
