internal import Networking
internal import Platform
internal import Synchronization

/// The actors of one reactor that are deactivated when idle.
///
/// They are checked in turn, some at a time, so that a call pays only for one store to memory.
struct IdleActorTracker {
    struct Entry {
        let record: ActorRecord
        let time: UInt64
        var quietSince: UInt64
    }

    private var entries: [Entry] = []
    private var next = 0

    mutating func trackActor(_ record: ActorRecord, _ policy: IdlePolicy, at now: UInt64) {
        entries.append(Entry(record: record, time: policy.time.nanoseconds, quietSince: now))
    }

    /// Checks up to `count` actors. Removes and returns those that were idle for their time.
    mutating func removeIdle(of count: Int, at now: UInt64) -> [ActorRecord] {
        var removed: [ActorRecord] = []
        for _ in 0..<min(count, entries.count) {
            if next >= entries.count { next = 0 }
            let instance = entries[next].record.actorInstance
            if instance.consumeUseFlag() {
                entries[next].quietSince = now
                next += 1
            } else if now - min(now, entries[next].quietSince) >= entries[next].time {
                removed.append(entries[next].record)
                entries[next] = entries[entries.count - 1]
                entries.removeLast()
            } else {
                next += 1
            }
        }
        return removed
    }

    var count: Int { entries.count }
}

/// The clock for idle times: that of the reactor, which tests advance.
final class IdleClock: Sendable {
    private let ahead = Atomic<UInt64>(0)

    func now(on reactor: Reactor) -> UInt64 { reactor.now &+ ahead.load(ordering: .relaxed) }

    func advance(by time: Duration) { ahead.add(time.nanoseconds, ordering: .relaxed) }
}
