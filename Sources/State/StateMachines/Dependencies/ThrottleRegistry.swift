import Synchronization

/// The last starts of throttled effects, by their ids; one registry for each machine.
///
/// Expired entries are removed when the next effect comes, so the number of entries is at most that of ids within one
/// interval.
final class ThrottleRegistry: Sendable {
    /// The decision about a throttled effect.
    enum Decision {
        case go
        case drop
        /// Sleep for the duration, then call ``endEffect(_:_:isOver:_:)``.
        case wait(Duration, ticket: UInt64)
    }

    /// The registry for effects created outside any machine.
    static let ofProcess = ThrottleRegistry()

    /// The name of an effect, and its path in the tree of reducers.
    private struct Key: Hashable {
        let name: AnyID
        let path: [AnyID]

        init(_ id: EffectID) { (name, path) = (id.name, id.path) }
    }

    /// An effect that has started.
    private struct Entry {
        let interval: Duration
        /// The time since its start. It runs code of the clock: called without the lock.
        let elapsed: @Sendable () -> Duration
        /// Unique among the entries.
        let number: UInt64
        /// The effect that is to start at the end of the interval.
        var waiting: Waiting?

        /// True if an effect waits and was not cancelled.
        var isAwaited: Bool { waiting.map { !$0.flag.isSet } ?? false }
    }

    /// An effect that waits for the end of an interval.
    private struct Waiting {
        let ticket: UInt64
        let flag: CancellationFlag
    }

    /// The entries of throttled effects, under the lock.
    private struct State {
        var entries: [Key: Entry] = [:]
        var lastNumber: UInt64 = 0

        mutating func next() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    private let state = Mutex(State())

    /// Decides whether an effect starts, waits or is dropped.
    ///
    /// - Parameter flag: Set when the effect is cancelled. A cancelled waiting effect no longer delays another.
    func startEffect(
        _ id: EffectID, _ interval: Duration, latest: Bool, _ clock: any Clock<Duration>, _ flag: CancellationFlag
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
                // An effect has started meanwhile: repeat, so that its clock is read without the lock, too.
                guard entry.number == known[key]?.number else { return nil }
                guard latest || !entry.isAwaited else { return .drop }
                let ticket = state.next()
                state.entries[key]?.waiting = Waiting(ticket: ticket, flag: flag)
                return .wait(max(.zero, entry.interval - times[key, default: .zero]), ticket: ticket)
            }
            // Entries removed under the lock are released here, with their clocks' instants.
            withExtendedLifetime(known) {}
            if let decision { return decision }
        }
    }

    /// Returns true if the waiting effect starts: it does unless a later one has replaced it, or it was cancelled.
    func endEffect(_ id: EffectID, _ ticket: UInt64, isOver: Bool, _ clock: any Clock<Duration>) -> Bool {
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

/// Records the cancellation of an effect that may not have started.
final class CancellationFlag: Sendable {
    private let flag = Atomic(false)
    var isSet: Bool { flag.load(ordering: .acquiring) }
    func set() { flag.store(true, ordering: .releasing) }
}
