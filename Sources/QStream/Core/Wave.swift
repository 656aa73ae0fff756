internal import Synchronization

/// Everything that one sent value causes, down to the last subscriber.
///
/// A value runs down plain operators at once. Where streams meet (``Join``), the wave notes the place and comes back to it
/// when all that stands above has been done: so each meeting sees the wave complete, and fires once.
///
/// Where one wave would overtake another between two joins, it becomes part of the other, with all that it has still to
/// fire; its sender waits, holding nothing, until the other has come to its end.
public final class Wave: Sendable {
    private struct State {
        var due: [any Joining] = []
        var isDrained = false
        var waiting: [UnsafeContinuation<Void, Never>] = []
        /// The wave that this one has become part of.
        var whole: Wave?
    }

    private let state = Mutex(State())
    /// Whether the wave has met a join; while it has not, nobody but its own task knows it.
    private let hasJoins = Atomic(false)
    private let ownTask: Int

    /// Taken after a join's lock and before a wave's own: no two waves become part of each other.
    private static let merging = Mutex(())

    init(task: Int = CurrentTask.identity) { ownTask = task }

    /// The task that carries the wave on: the one that began it, or the whole that it is part of.
    var task: Int { hasJoins.load(ordering: .relaxed) ? root.ownTask : ownTask }

    func fireLater(_ join: any Joining) {
        hasJoins.store(true, ordering: .relaxed)
        root.state.withLock { $0.due.append(join) }
    }

    /// Fires the joins that the wave has reached, upper ones first.
    @inline(__always)
    nonisolated(nonsending) func drain() async {
        if hasJoins.load(ordering: .relaxed) { await drainDue() }
    }

    private nonisolated(nonsending) func drainDue() async {
        while let join = next() { await join.fire(self) }
    }

    private func next() -> (any Joining)? {
        let (join, waiting) = state.withLock { state -> ((any Joining)?, [UnsafeContinuation<Void, Never>]) in
            if state.due.isEmpty {
                state.isDrained = true
                let waiting = state.waiting
                state.waiting = []
                return (nil, waiting)
            }
            var upmost = 0
            for index in state.due.indices.dropFirst() where state.due[index].height < state.due[upmost].height {
                upmost = index
            }
            return (state.due.remove(at: upmost), [])
        }
        for continuation in waiting { continuation.resume() }
        return join
    }

    /// The wave that this one is part of, or itself.
    var root: Wave {
        var wave = self
        while let whole = wave.state.withLock({ $0.whole }) { wave = whole }
        return wave
    }

    /// Becomes part of an older wave, that cannot come to its end meanwhile because it has yet to fire a join whose lock
    /// the caller holds. That join is `join`; the older one fires it for both.
    ///
    /// - Returns: false when the older one waits for this one (it is the same task's) or has nobody to drain it any more.
    func merge(into other: Wave, at join: any Joining) -> Bool {
        Self.merging.withLock { _ in
            let older = other.root
            guard older !== self, older.ownTask != ownTask else { return false }
            return older.state.withLock { state in
                guard !state.isDrained else { return false }
                let due = self.state.withLock { own in
                    own.whole = older
                    let due = own.due
                    own.due = []
                    return due
                }
                for join in due + [join] where !state.due.contains(where: { $0 === join }) { state.due.append(join) }
                return true
            }
        }
    }

    /// Waits for the wave that this one has become part of.
    @inline(__always)
    nonisolated(nonsending) func settle() async {
        if hasJoins.load(ordering: .relaxed) { await waitForWhole() }
    }

    private nonisolated(nonsending) func waitForWhole() async {
        var wave = self
        while let whole = wave.state.withLock({ $0.whole }) {
            await whole.waitUntilDrained()
            wave = whole
        }
    }

    private func waitUntilDrained() async {
        await withUnsafeContinuation { continuation in
            let isWaiting = state.withLock { state in
                guard !state.isDrained else { return false }
                state.waiting.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }
}

/// A place where streams meet, as a wave sees it.
protocol Joining: AnyObject, Sendable {
    /// More than that of each join above.
    var height: Int { get }
    func fire(_ wave: Wave) async
}
