internal import Relays
internal import Synchronization

/// The propagation of one sent value, down to the last subscriber.
///
/// A value passes plain operators at once. Where streams meet (`Join`), the wave records the join and fires it after
/// everything above is done. So each join sees the complete wave, and fires once.
///
/// A wave that would overtake another one between two joins becomes part of it, with all its unfired joins. Its sender
/// waits, without holding a lock, until the other wave has ended.
public final class Wave: Sendable {
    /// The joins to fire and the relations to other waves, under the lock.
    private struct State {
        var pendingJoins: [any Joining] = []
        var isDrained = false
        var waiting: [UnsafeContinuation<Void, Never>] = []
        /// The wave that this one has become part of.
        var whole: Wave?
        /// The waves that have become part of this one.
        var parts: [Wave] = []
    }

    /// The parties to notify at the end of the wave.
    private struct Ended {
        var origin: (any Upstream)?
        var parts: [Wave] = []
        var waiting: [UnsafeContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    /// The progress of waves. A wave that meets no join uses no lock.
    private enum Stage: UInt8, AtomicRepresentable {
        case plain, joined, over
    }

    private let stage = Atomic<Stage>(.plain)
    private let ownTask: Int
    /// The origin of the wave; nil if it only brings a new stream its first value.
    let origin: (any Upstream)?

    /// True during the delivery of a value: in a closure of a stream, or in a task started there.
    static var isInside: Bool { inside.get() }
    @usableFromInline static let inside = TaskLocal(wrappedValue: false)

    /// Taken after the lock of a join and before the lock of a wave, so that two waves cannot become part of each
    /// other.
    private static let merging = Mutex(())

    init(from origin: (any Upstream)? = nil) {
        ownTask = CurrentTask.identity
        self.origin = origin
    }

    @usableFromInline
    func originates(in outlet: AnyObject) -> Bool { origin === outlet }

    /// The task that executes the wave: that of its origin, or of the whole that it is part of.
    @usableFromInline var task: Int { stage.load(ordering: .relaxed) == .joined ? root.ownTask : ownTask }

    @usableFromInline var isJoined: Bool { stage.load(ordering: .relaxed) == .joined }

    /// Executes the wave: runs `emit`, then fires the joins that it has reached, upper ones first.
    @inlinable
    @inline(__always)
    func run(isolation: isolated (any Actor)? = #isolation, _ emit: () async -> Void) async {
        await Self.inside.withValue(true) {
            // Explicit, because a closure without isolation runs on no actor: the value would leave the sender's
            // actor.
            _ = isolation
            await emit()
            if !endWithoutJoins() { await firePendingJoins() }
        }
    }

    /// Ends a wave that has met no join.
    @usableFromInline
    func endWithoutJoins() -> Bool {
        guard stage.compareExchange(expected: .plain, desired: .over, ordering: .acquiringAndReleasing).exchanged
        else { return false }
        origin?.removeWave(self)
        return true
    }

    @usableFromInline
    nonisolated(nonsending) func firePendingJoins() async {
        while let join = nextJoin() { await join.fire(self) }
    }

    /// Records a join to be fired after everything above it is done. Callable from any task.
    ///
    /// - Returns: false when the wave has ended.
    @discardableResult
    func fireLater(_ join: any Joining) -> Bool {
        let change = stage.compareExchange(expected: .plain, desired: .joined, ordering: .acquiringAndReleasing)
        if change.original == .over { return false }
        var wave = self
        while true {
            let (isRecorded, whole) = wave.state.withLock { state -> (Bool, Wave?) in
                if let whole = state.whole { return (false, whole) }
                guard !state.isDrained else { return (false, nil) }
                state.pendingJoins.append(join)
                return (true, nil)
            }
            guard let whole else { return isRecorded }
            wave = whole
        }
    }

    /// Returns the next join to fire; nil if there is none, which ends the wave.
    private func nextJoin() -> (any Joining)? {
        let (join, ended) = state.withLock { state -> ((any Joining)?, Ended) in
            guard state.pendingJoins.isEmpty else {
                var highest = 0
                for index in state.pendingJoins.indices.dropFirst()
                where state.pendingJoins[index].height < state.pendingJoins[highest].height {
                    highest = index
                }
                return (state.pendingJoins.remove(at: highest), Ended())
            }
            state.isDrained = true
            // A part stays in progress until its whole has ended.
            let isPart = state.whole != nil
            let ended = Ended(
                origin: isPart ? nil : origin, parts: isPart ? [] : state.parts, waiting: state.waiting)
            state.waiting = []
            if !isPart { state.parts = [] }
            return (nil, ended)
        }
        if let origin = ended.origin { origin.removeWave(self) }
        for part in ended.parts { part.endWithWhole() }
        for continuation in ended.waiting { continuation.resume() }
        return join
    }

    private func endWithWhole() {
        origin?.removeWave(self)
        let parts = state.withLock { state in
            let parts = state.parts
            state.parts = []
            return parts
        }
        for part in parts { part.endWithWhole() }
    }

    /// The wave that this one is part of, or itself.
    var root: Wave {
        var wave = self
        while let whole = wave.state.withLock({ $0.whole }) { wave = whole }
        return wave
    }

    /// Merges this wave into an older one. The older one cannot end meanwhile, because it has yet to fire `join`,
    /// whose lock the caller holds. It fires `join` for both waves.
    ///
    /// - Returns: false if the older one waits for this one (they have the same task) or no task drains it any more.
    func merge(into other: Wave, at join: any Joining) -> Bool {
        Self.merging.withLock { _ in
            let older = other.root
            guard older !== self, older.ownTask != ownTask else { return false }
            return older.state.withLock { state in
                guard !state.isDrained else { return false }
                let pendingJoins = self.state.withLock { ownState in
                    ownState.whole = older
                    let pendingJoins = ownState.pendingJoins
                    ownState.pendingJoins = []
                    return pendingJoins
                }
                state.parts.append(self)
                for join in pendingJoins + [join] where !state.pendingJoins.contains(where: { $0 === join }) {
                    state.pendingJoins.append(join)
                }
                return true
            }
        }
    }

    /// Waits for the wave that this one has become part of. Does not wait during a delivery, because that wave may
    /// wait for the sender there.
    @inlinable
    @inline(__always)
    nonisolated(nonsending) func settle() async {
        if isJoined { await settleLater() }
    }

    @usableFromInline
    nonisolated(nonsending) func settleLater() async {
        if stage.load(ordering: .relaxed) == .joined, !Self.isInside { await waitForWhole() }
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

/// A place where streams meet, as seen by a wave.
protocol Joining: AnyObject, Sendable {
    /// The height, greater than that of each join above.
    var height: Int { get }
    func fire(_ wave: Wave) async
}
