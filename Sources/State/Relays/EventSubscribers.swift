public import Synchronization

/// The subscribers of one event relay, and the lock that gives all of them the same order of events.
///
/// The lock is taken before the lock of a queue, never after it. Readers are resumed and events are released after
/// both locks are released.
@usableFromInline
final class EventSubscribers<Event: Sendable>: Sendable {
    @usableFromInline typealias Queue = EventSubscription<Event>.Queue

    /// The queues of the subscribers, by their ids.
    @usableFromInline
    struct Members {
        @usableFromInline var queues: [UInt64: Queue] = [:]
        @usableFromInline var lastID: UInt64 = 0
        @usableFromInline var isFinished = false

        @inlinable
        init() {}
    }

    @usableFromInline let members = Mutex(Members())

    @inlinable
    init() {}

    @inlinable
    var count: Int { members.withLock { $0.queues.count } }

    @inlinable
    func addQueue(_ queue: Queue) -> UInt64 {
        members.withLock { members in
            members.lastID += 1
            if members.isFinished {
                queue.withLock { $0.finish() }
            } else {
                members.queues[members.lastID] = queue
            }
            return members.lastID
        }
    }

    @inlinable
    func remove(_ id: UInt64) {
        // Returned from the lock's closure: the last reference to a queue releases its events.
        _ = members.withLock { $0.queues.removeValue(forKey: id) }
    }

    @inlinable
    func send(_ event: Event) {
        var woken: [MonitorWaiters.Resumptions] = []
        var dropped: [Event] = []
        members.withLock { members in
            for (id, queue) in members.queues {
                let (outcome, sleepers) = queue.change { $0.offer(event) }
                if !sleepers.isEmpty { woken.append(sleepers) }
                switch outcome {
                case .appended, .ignored: break
                case .dropped(let event): dropped.append(event)
                case .failed: members.queues[id] = nil
                }
            }
        }
        for sleepers in woken { sleepers.resume() }
        withExtendedLifetime(dropped) {}
    }

    @inlinable
    func finish() {
        let ended = members.withLock { members in
            members.isFinished = true
            var queues: [UInt64: Queue] = [:]
            swap(&queues, &members.queues)
            return queues
        }
        for queue in ended.values { queue.change { $0.finish() }.woken.resume() }
    }
}
