internal import Glibc
internal import Platform

/// Work that one reactor gathers for another one, so that many pieces share a lock and a wake-up.
package protocol GatheredWork: AnyObject, Sendable {
    /// It goes now, and nothing is added any more. On the reactor where it was gathered; it sends nothing.
    func close()

    /// On the reactor that it was gathered for.
    func arrive()
}

extension Reactor {
    /// What has been gathered for each of the others, in its order.
    struct Outboxes {
        fileprivate var boxes: [(target: Reactor, work: [any GatheredWork])] = []
        fileprivate var count = 0
        /// When the clock had been looked at last as the oldest of it was begun.
        fileprivate var began: UInt64 = 0

        @inline(__always) var isEmpty: Bool { count == 0 }
    }

    /// With so many pieces it goes at once, so that the other reactor has something to do meanwhile.
    private static let mostGathered = 8
    /// Nanoseconds after which it goes, as far as the clock is looked at.
    private static let longestGathering: UInt64 = 100_000

    /// Sends `work` to another reactor soon: when the event that brought it has been handled, or a few more have, and before anything else that
    /// this one sends there. Until then more may be added to it.
    package func gather(_ work: any GatheredWork, for target: Reactor) {
        assertCurrent()
        assert(target !== self, "what is for this reactor is not gathered")
        if outboxes.count == 0 { outboxes.began = lastLook }
        outboxes.count += 1
        if let place = outboxes.boxes.firstIndex(where: { $0.target === target }) {
            outboxes.boxes[place].work.append(work)
        } else {
            outboxes.boxes.append((target, [work]))
        }
    }

    @inline(never)
    func handOverWhenDue() {
        guard outboxes.count >= Self.mostGathered || lastLook &- outboxes.began > Self.longestGathering else { return }
        handOver()
    }

    @inline(__always)
    func handOver() { if !outboxes.isEmpty { handOverAll() } }

    @inline(never)
    private func handOverAll() {
        for place in outboxes.boxes.indices { handOver(place) }
    }

    @inline(__always)
    func handOver(to target: Reactor) {
        guard !outboxes.isEmpty, let place = outboxes.boxes.firstIndex(where: { $0.target === target }) else { return }
        handOver(place)
    }

    private func handOver(_ place: Int) {
        guard !outboxes.boxes[place].work.isEmpty else { return }
        var work: [any GatheredWork] = []
        swap(&work, &outboxes.boxes[place].work)
        outboxes.count -= work.count
        for piece in work { piece.close() }
        outboxes.boxes[place].target.receive(work)
        work.removeAll(keepingCapacity: true)
        // Its memory serves the next ones.
        swap(&work, &outboxes.boxes[place].work)
    }

    // MARK: The reactor of a thread

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        precondition(pthread_key_create(&key, nil) == 0, "no room for what belongs to a thread")
        return key
    }()

    /// The one whose thread this is. It lives as long as the process, and so without being held.
    static var ofThread: Reactor? {
        pthread_getspecific(key).map { Unmanaged<Reactor>.fromOpaque($0).takeUnretainedValue() }
    }

    func beOfThread() { pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque()) }
}

/// Work that is waited for.
extension Reactor {
    /// Runs `work` on the reactor's thread and gives its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in execute { continuation.resume(returning: work()) } }
    }
}
