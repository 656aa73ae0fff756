import Testing

@testable import SharedState

struct SaveQueueTests {
    @Test("one save runs at a time, and then saves later changes")
    func handOver() {
        var queue = SaveQueue()
        let isFirst = queue.enqueueSave(.didSet, nil)
        let first = queue.next()
        let isSecond = queue.enqueueSave(.didSet, nil)
        let left = queue.next()
        let none = queue.next()
        let isFirstAgain = queue.enqueueSave(.didSet, nil)
        #expect([isFirst, isSecond, isFirstAgain] == [true, false, true])
        #expect([first, left, none].map { $0 != nil } == [true, true, false])
    }

    @Test("waiting requests become one save for all waiters, explicit if one of them was")
    func merge() {
        var queue = SaveQueue()
        _ = queue.enqueueSave(.didSet, nil)
        _ = queue.next()
        _ = queue.enqueueSave(.userInitiated) { _ in }
        _ = queue.enqueueSave(.didSet) { _ in }
        let save = queue.next()
        #expect(save?.context == .userInitiated)
        #expect(save?.waiters.count == 2)
        let none = queue.next()
        #expect(none == nil)
    }
}
