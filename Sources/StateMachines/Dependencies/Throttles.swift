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

    private struct Entry {
        let interval: Duration
        /// The time since the last one began.
        let elapsed: @Sendable () -> Duration
        /// The one that is to begin at the end of the interval.
        var waiting: UInt64?

        init(_ interval: Duration, _ clock: any Clock<Duration>) {
            self.interval = interval
            elapsed = Self.reading(clock)
        }

        private static func reading<C: Clock>(_ clock: C) -> @Sendable () -> Duration where C.Duration == Duration {
            let start = clock.now
            return { start.duration(to: clock.now) }
        }
    }

    private let state = Mutex<(entries: [Key: Entry], lastTicket: UInt64)>(([:], 0))

    func begin(_ id: EffectID, _ interval: Duration, latest: Bool, _ clock: any Clock<Duration>) -> Decision {
        state.withLock { state in
            state.entries = state.entries.filter { $1.waiting != nil || $1.elapsed() < $1.interval }
            guard var entry = state.entries[Key(id)] else {
                state.entries[Key(id)] = Entry(interval, clock)
                return .go
            }
            guard latest || entry.waiting == nil else { return .drop }
            state.lastTicket += 1
            entry.waiting = state.lastTicket
            state.entries[Key(id)] = entry
            return .wait(max(.zero, entry.interval - entry.elapsed()), ticket: state.lastTicket)
        }
    }

    /// Whether the one that has waited begins: it does unless a later one has taken its place, or it was cancelled.
    func end(_ id: EffectID, _ ticket: UInt64, isOver: Bool, _ clock: any Clock<Duration>) -> Bool {
        state.withLock { state in
            guard let entry = state.entries[Key(id)], entry.waiting == ticket else { return false }
            if isOver {
                state.entries[Key(id)] = Entry(entry.interval, clock)
            } else {
                state.entries[Key(id)]?.waiting = nil
            }
            return isOver
        }
    }
}
