import Synchronization

/// When effects that are throttled have begun last, by their ids; one for each machine.
///
/// What is over is forgotten when the next one comes: there are as many entries as ids within one interval.
final class Throttles: Sendable {
    enum Decision {
        case go
        case drop
        /// Sleep so long, and then ask ``end(_:_:isOver:_:)``.
        case wait(Duration, ticket: UInt64)
    }

    /// Those of effects that are made outside of any machine.
    static let ofProcess = Throttles()

    private struct Key: Hashable {
        let name: AnyID
        let path: [AnyID]

        init(_ id: EffectID) { (name, path) = (id.name, id.path) }
    }

    /// One that has begun.
    private struct Entry {
        let interval: Duration
        /// The time since it began. Code of the clock's: called without the lock.
        let elapsed: @Sendable () -> Duration
        /// Another than that of each other entry.
        let number: UInt64
        /// The one that is to begin at the end of the interval.
        var waiting: Waiting?

        /// Whether one waits that nobody has cancelled.
        var isAwaited: Bool { waiting.map { !$0.mark.isSet } ?? false }
    }

    private struct Waiting {
        let ticket: UInt64
        let mark: CancellationMark
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var lastNumber: UInt64 = 0

        mutating func next() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    private let state = Mutex(State())

    /// - Parameter mark: Set when the effect is cancelled. One that waited holds up no other from then on.
    func begin(
        _ id: EffectID, _ interval: Duration, latest: Bool, _ clock: any Clock<Duration>, _ mark: CancellationMark
    ) -> Decision {
        let key = Key(id)
        let elapsed = Self.elapsed(by: clock)
        while true {
            let known = state.withLock { $0.entries }
            let times = known.mapValues { $0.elapsed() }
            let over = known.filter { !$1.isAwaited && times[$0, default: .zero] >= $1.interval }
            let decision: Decision? = state.withLock { state in
                for (key, entry) in over {
                    guard let current = state.entries[key], current.number == entry.number, !current.isAwaited
                    else { continue }
                    state.entries[key] = nil
                }
                guard let entry = state.entries[key] else {
                    state.entries[key] = Entry(interval: interval, elapsed: elapsed, number: state.next())
                    return .go
                }
                // One that has begun meanwhile: it is looked at anew, so that its clock is asked without the lock, too.
                guard entry.number == known[key]?.number else { return nil }
                guard latest || !entry.isAwaited else { return .drop }
                let ticket = state.next()
                state.entries[key]?.waiting = Waiting(ticket: ticket, mark: mark)
                return .wait(max(.zero, entry.interval - times[key, default: .zero]), ticket: ticket)
            }
            // What the lock let go of is released here, with the clocks' moments in it.
            withExtendedLifetime(known) {}
            if let decision { return decision }
        }
    }

    /// Whether the one that has waited begins: it does unless a later one has taken its place, or it was cancelled.
    func end(_ id: EffectID, _ ticket: UInt64, isOver: Bool, _ clock: any Clock<Duration>) -> Bool {
        let key = Key(id)
        let elapsed = isOver ? Self.elapsed(by: clock) : nil
        let (begins, replaced) = state.withLock { state -> (Bool, Entry?) in
            guard let entry = state.entries[key], entry.waiting?.ticket == ticket else { return (false, nil) }
            guard let elapsed else {
                state.entries[key]?.waiting = nil
                return (false, nil)
            }
            state.entries[key] = Entry(interval: entry.interval, elapsed: elapsed, number: state.next())
            return (true, entry)
        }
        withExtendedLifetime(replaced) {}
        return begins
    }

    private static func elapsed<C: Clock>(by clock: C) -> @Sendable () -> Duration where C.Duration == Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}

/// Says whether something was cancelled that has perhaps not even begun.
final class CancellationMark: Sendable {
    private let flag = Atomic(false)
    var isSet: Bool { flag.load(ordering: .acquiring) }
    func set() { flag.store(true, ordering: .releasing) }
}
