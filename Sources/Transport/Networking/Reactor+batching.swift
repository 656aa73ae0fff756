internal import Glibc
internal import Platform

/// Work that one reactor collects for another, so that many items share a lock and a wake-up.
package protocol BatchedTask: AnyObject, Sendable {
    /// Closes the batch before it is sent: no item is added afterwards. Called on the collecting reactor; it must send nothing.
    func close()

    /// Executes the work on the target reactor.
    func arrive()
}

extension Reactor {
    /// The collected work for each other reactor, in order.
    struct Outboxes {
        fileprivate var boxes: [(target: Reactor, work: [any BatchedTask])] = []
        fileprivate var count = 0
        /// The last clock reading when the oldest work was started.
        fileprivate var began: UInt64 = 0

        @inline(__always) var isEmpty: Bool { count == 0 }
    }

    /// The number of items at which the work is sent immediately, so that the target reactor can start.
    private static let maximumBatched = 8
    /// The nanoseconds after which the work is sent, with the precision of the clock readings.
    private static let maximumGathering: UInt64 = 100_000

    /// Sends `work` to another reactor soon: after the current event or a few more, and before anything else that this reactor
    /// sends there. More can be added to it until then.
    package func gather(_ work: any BatchedTask, for target: Reactor) {
        assertCurrent()
        assert(target !== self, "work for the current reactor must not be batched")
        if outboxes.count == 0 { outboxes.began = lastClockReading }
        outboxes.count += 1
        if let index = outboxes.boxes.firstIndex(where: { $0.target === target }) {
            outboxes.boxes[index].work.append(work)
        } else {
            outboxes.boxes.append((target, [work]))
        }
    }

    @inline(never)
    func handOverWhenDue() {
        guard outboxes.count >= Self.maximumBatched || lastClockReading &- outboxes.began > Self.maximumGathering else {
            return
        }
        handOver()
    }

    @inline(__always)
    func handOver() { if !outboxes.isEmpty { handOverAll() } }

    @inline(never)
    private func handOverAll() {
        for index in outboxes.boxes.indices { handOver(index) }
    }

    @inline(__always)
    func handOver(to target: Reactor) {
        guard !outboxes.isEmpty, let index = outboxes.boxes.firstIndex(where: { $0.target === target }) else { return }
        handOver(index)
    }

    private func handOver(_ index: Int) {
        guard !outboxes.boxes[index].work.isEmpty else { return }
        var work: [any BatchedTask] = []
        swap(&work, &outboxes.boxes[index].work)
        outboxes.count -= work.count
        for piece in work { piece.close() }
        outboxes.boxes[index].target.receive(work)
        work.removeAll(keepingCapacity: true)
        // The array's memory is reused.
        swap(&work, &outboxes.boxes[index].work)
    }

    // MARK: The current reactor

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        precondition(pthread_key_create(&key, nil) == 0, "pthread_key_create failed: no thread-specific key is free")
        return key
    }()

    /// The reactor of the current thread. It lives as long as the process, so it is not retained.
    static var ofThread: Reactor? {
        pthread_getspecific(key).map { Unmanaged<Reactor>.fromOpaque($0).takeUnretainedValue() }
    }

    func beOfThread() { pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque()) }
}

/// Work with an awaited result.
extension Reactor {
    /// Runs `work` on the reactor's thread and returns its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in execute { continuation.resume(returning: work()) } }
    }
}
