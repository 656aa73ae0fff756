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
        /// Where it began, until its end.
        var origin: (any Upstream)?
        /// The wave that this one has become part of.
        var whole: Wave?
        /// The waves that have become part of this one.
        var parts: [Wave] = []
    }

    private let state = Mutex(State())
    /// Whether there is, or was, a join to fire.
    private let hasJoins = Atomic(false)
    private let hasBegun = Atomic(false)
    private let ownTask: Int

    /// Whether this runs because a value is being delivered: in a closure of a stream, or in a task started there.
    @TaskLocal static var isInside = false

    /// Taken after a join's lock and before a wave's own: no two waves become part of each other.
    private static let merging = Mutex(())

    init(task: Int = CurrentTask.identity) { ownTask = task }

    /// The task that carries the wave on: the one that began it, or the whole that it is part of.
    var task: Int { hasJoins.load(ordering: .relaxed) ? root.ownTask : ownTask }

    /// Notes where the wave begins: the first outlet that emits in it. False for all others.
    @inline(__always)
    func begin(at outlet: any Upstream) -> Bool {
        if hasBegun.load(ordering: .relaxed) { return false }
        hasBegun.store(true, ordering: .relaxed)
        state.withLock { $0.origin = outlet }
        return true
    }

    /// Does all that the wave causes: what `emit` does, and then the joins that it has reached, upper ones first.
    @inline(__always)
    nonisolated(nonsending) func run(_ emit: () async -> Void) async {
        await Self.$isInside.withValue(true) {
            await emit()
            while let join = next() { await join.fire(self) }
        }
        end()
    }

    /// Notes a join that is to be fired when all above it has been done. Any task may.
    ///
    /// - Returns: false when the wave has come to its end.
    @discardableResult
    func fireLater(_ join: any Joining) -> Bool {
        hasJoins.store(true, ordering: .relaxed)
        var wave = self
        while true {
            let (isNoted, whole) = wave.state.withLock { state -> (Bool, Wave?) in
                if let whole = state.whole { return (false, whole) }
                guard !state.isDrained else { return (false, nil) }
                state.due.append(join)
                return (true, nil)
            }
            guard let whole else { return isNoted }
            wave = whole
        }
    }

    private func next() -> (any Joining)? {
        state.withLock { state in
            guard !state.due.isEmpty else {
                state.isDrained = true
                return nil
            }
            var upmost = 0
            for index in state.due.indices.dropFirst() where state.due[index].height < state.due[upmost].height {
                upmost = index
            }
            return state.due.remove(at: upmost)
        }
    }

    /// Is no longer under way, nor are its parts; what has become a part is, until its whole has come to its end.
    private func end(withWhole: Bool = false) {
        let (waiting, origin, parts) = state.withLock { state in
            let isOver = withWhole || state.whole == nil
            let ended = (state.waiting, isOver ? state.origin : nil, isOver ? state.parts : [])
            state.waiting = []
            if isOver { (state.origin, state.parts) = (nil, []) }
            return ended
        }
        origin?.end(self)
        for part in parts { part.end(withWhole: true) }
        for continuation in waiting { continuation.resume() }
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
                state.parts.append(self)
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
