/// A binary heap of timers, ordered by deadline. Cancelled timers are dropped when they reach the top or when they are more than
/// half of the heap.
package struct TimerQueue {
    private var heap: [LoopTimer] = []
    private var sweepAt = 64

    package init() {}

    /// The number of timers that have neither fired nor been cancelled.
    package var liveCount: Int { heap.reduce(0) { $0 + ($1.work == nil ? 0 : 1) } }

    /// Returns the earliest deadline of a timer that is not cancelled.
    package mutating func nextDeadline() -> UInt64? {
        while let first = heap.first {
            if first.work != nil { return first.deadline }
            removeFirst()
        }
        return nil
    }

    package mutating func insert(_ timer: LoopTimer) {
        if heap.count >= sweepAt { sweep() }
        heap.append(timer)
        siftUp(heap.count - 1)
    }

    /// Removes and returns the action of the earliest timer that is due at `now`.
    package mutating func popDue(at now: UInt64) -> (() -> Void)? {
        while let first = heap.first, first.deadline <= now {
            removeFirst()
            if let work = first.work {
                first.work = nil
                return work
            }
        }
        return nil
    }

    private mutating func sweep() {
        heap.removeAll { $0.work == nil }
        heap.sort { $0.deadline < $1.deadline }
        sweepAt = max(64, heap.count * 2)
    }

    private mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        siftDown(0)
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard heap[index].deadline < heap[parent].deadline else { return }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline { least = child }
            if least == index { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
