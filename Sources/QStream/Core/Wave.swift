internal import Relays
internal import Synchronization

/// Everything that one sent value causes, down to the last subscriber.
///
/// A value runs down plain operators at once. Where streams meet (`Join`), the wave notes the place and comes back to it
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
        /// The waves that have become part of this one.
        var parts: [Wave] = []
    }

    /// What has to be told when the wave has come to its end.
    private struct Ended {
        var origin: (any Upstream)?
        var parts: [Wave] = []
        var waiting: [UnsafeContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    /// How far it is, for those that meet no join: they do without the lock.
    private enum Stage: UInt8, AtomicRepresentable {
        case plain, joined, over
    }

    private let stage = Atomic<Stage>(.plain)
    private let ownTask: Int
    /// Where it begins; nil for one that only brings something new its first value.
    let origin: (any Upstream)?

    /// Whether this runs because a value is being delivered: in a closure of a stream, or in a task started there.
    static var isInside: Bool { inside.get() }
    @usableFromInline static let inside = TaskLocal(wrappedValue: false)

    /// Taken after a join's lock and before a wave's own: no two waves become part of each other.
    private static let merging = Mutex(())

    init(from origin: (any Upstream)? = nil) {
        ownTask = CurrentTask.identity
        self.origin = origin
    }

    @usableFromInline
    func begins(in outlet: AnyObject) -> Bool { origin === outlet }

    /// The task that carries the wave on: the one that began it, or the whole that it is part of.
    @usableFromInline var task: Int { stage.load(ordering: .relaxed) == .joined ? root.ownTask : ownTask }

    @usableFromInline var isJoined: Bool { stage.load(ordering: .relaxed) == .joined }

    /// Does all that the wave causes: what `emit` does, and then the joins that it has reached, upper ones first.
    @inlinable
    @inline(__always)
    func run(isolation: isolated (any Actor)? = #isolation, _ emit: () async -> Void) async {
        await Self.inside.withValue(true) {
            // Named, as a closure that does not is on no actor: the value would leave the sender's for it.
            _ = isolation
            await emit()
            if !endPlainly() { await fireDue() }
        }
    }

    /// Ends a wave that has met no join.
    @usableFromInline
    func endPlainly() -> Bool {
        guard stage.compareExchange(expected: .plain, desired: .over, ordering: .acquiringAndReleasing).exchanged
        else { return false }
        origin?.end(self)
        return true
    }

    @usableFromInline
    nonisolated(nonsending) func fireDue() async {
        while let join = next() { await join.fire(self) }
    }

    /// Notes a join that is to be fired when all above it has been done. Any task may.
    ///
    /// - Returns: false when the wave has come to its end.
    @discardableResult
    func fireLater(_ join: any Joining) -> Bool {
        let change = stage.compareExchange(expected: .plain, desired: .joined, ordering: .acquiringAndReleasing)
        if change.original == .over { return false }
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

    /// The next join to fire; nil when there is none any more: the wave has come to its end.
    private func next() -> (any Joining)? {
        let (join, ended) = state.withLock { state -> ((any Joining)?, Ended) in
            guard state.due.isEmpty else {
                var upmost = 0
                for index in state.due.indices.dropFirst() where state.due[index].height < state.due[upmost].height {
                    upmost = index
                }
                return (state.due.remove(at: upmost), Ended())
            }
            state.isDrained = true
            // What has become a part is under way until its whole has come to its end.
            let isPart = state.whole != nil
            let ended = Ended(
                origin: isPart ? nil : origin, parts: isPart ? [] : state.parts, waiting: state.waiting)
            state.waiting = []
            if !isPart { state.parts = [] }
            return (nil, ended)
        }
        if let origin = ended.origin { origin.end(self) }
        for part in ended.parts { part.endWithWhole() }
        for continuation in ended.waiting { continuation.resume() }
        return join
    }

    private func endWithWhole() {
        origin?.end(self)
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

    /// Waits for the wave that this one has become part of; not while a value is delivered, because that wave may be
    /// waiting for whoever sends there.
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

/// A place where streams meet, as a wave sees it.
protocol Joining: AnyObject, Sendable {
    /// More than that of each join above.
    var height: Int { get }
    func fire(_ wave: Wave) async
}
