internal import Platform
internal import Synchronization

/// Who owns a slot, as one node knows it: asked of the engine once, and again when who was said to own it refused.
public final class SlotDirectory: Sendable {
    private typealias Question = Task<Result<ClusterNode?, ClusterEngineError>, Never>

    private struct State {
        var owners: [ClusterSlot: ClusterNode] = [:]
        /// Under way; who wants to know the same waits for it.
        var asking: [ClusterSlot: Question] = [:]
        /// Pauses before it is asked again.
        var pauses: [ClusterSlot: Set<Task<Void, Never>>] = [:]
        var willKnow: (@Sendable (ClusterSlot, ClusterNode) -> Void)?
    }

    private let engine: any ClusterEngine
    private let member: ClusterMember?
    private let backoff: Backoff
    private let state = Mutex(State())

    /// - Parameter member: the node's own part, which knows of its slots without asking; nil for a node that owns none.
    public convenience init(_ engine: any ClusterEngine, member: ClusterMember? = nil) {
        self.init(engine, member: member, backoff: Backoff(first: .milliseconds(10), limit: .milliseconds(200)))
    }

    init(_ engine: any ClusterEngine, member: ClusterMember?, backoff: Backoff) {
        self.engine = engine
        self.member = member
        self.backoff = backoff
    }

    /// Calls `body` with the owner of a slot that was asked for, before anybody else hears of it.
    package func beforeAnswers(_ body: @escaping @Sendable (ClusterSlot, ClusterNode) -> Void) {
        state.withLock { $0.willKnow = body }
    }

    /// The same as `owner(of:)`, as far as it is known without asking.
    package func knownOwner(of slot: ClusterSlot) -> ClusterNode? {
        if let member, member.keeps(slot) { return member.node }
        return state.withLock { $0.owners[slot] }
    }

    /// The node that owns a slot, which may have changed since it was asked; nil when nobody does now.
    public func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> ClusterNode? {
        if let member, member.keeps(slot) { return member.node }
        let (known, asking) = state.withLock { state -> (ClusterNode?, Question?) in
            if let known = state.owners[slot] { return (known, nil) }
            let asking = state.asking[slot] ?? ask(slot)
            state.asking[slot] = asking
            return (nil, asking)
        }
        guard let asking else { return known }
        return try await asking.value.get()
    }

    /// The same, and where nobody owns the slot it waits until somebody does.
    ///
    /// - Throws: `unavailable` when nobody has after `timeout`, or the engine is out of reach.
    public func owner(
        of slot: ClusterSlot, waitingUpTo timeout: Duration
    ) async throws(ClusterEngineError) -> ClusterNode {
        let end = MonotonicClock.now &+ timeout.nanoseconds
        var failures = 0
        while true {
            do throws(ClusterEngineError) {
                if let owner = try await owner(of: slot) { return owner }
            } catch {
                // Who asks changes nothing: where it is not known whether the engine has heard the question, it is asked again.
                let mayPass = [.unavailable, .unknownOutcome, .overloaded].contains(error.code)
                guard mayPass, MonotonicClock.now < end else { throw error }
            }
            failures += 1
            let now = MonotonicClock.now
            let left = Duration.nanoseconds(Int64(clamping: end > now ? end - now : 0))
            guard left > .zero, !Task.isCancelled else {
                throw ClusterEngineError(.unavailable, "nobody owns \(slot) now, which its names lie in")
            }
            await pause(min(left, backoff.delay(afterFailures: failures)), for: slot)
        }
    }

    /// Until this node itself comes to own the slot, at most.
    private func pause(_ delay: Duration, for slot: ClusterSlot) async {
        let pause = Task<Void, Never> { try? await Task.sleep(for: delay) }
        state.withLock { _ = $0.pauses[slot, default: []].insert(pause) }
        // It may have come to that before this was noted.
        if member?.keeps(slot) == true { pause.cancel() }
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        state.withLock { state in
            state.pauses[slot]?.remove(pause)
            if state.pauses[slot]?.isEmpty == true { state.pauses[slot] = nil }
        }
    }

    /// For tests.
    func isWaiting(for slot: ClusterSlot) -> Bool { state.withLock { $0.pauses[slot] != nil } }

    /// This node owns the slot from now on: who waits for that hears it at once.
    package func didAcquire(_ slot: ClusterSlot) {
        for pause in state.withLock({ $0.pauses[slot] }) ?? [] { pause.cancel() }
    }

    /// Forgets that a node owns a slot, because that node said that it does not, or nobody listens there. What was learned since stays.
    public func forget(_ slot: ClusterSlot, ownedBy node: ClusterNode) {
        state.withLock { if $0.owners[slot] == node { $0.owners[slot] = nil } }
    }

    /// Forgets who owns a slot: this node is about to.
    package func forget(_ slot: ClusterSlot) { state.withLock { $0.owners[slot] = nil } }

    /// In the lock.
    private func ask(_ slot: ClusterSlot) -> Question {
        Task {
            let answer: Result<ClusterNode?, ClusterEngineError>
            do throws(ClusterEngineError) {
                let owner = try await engine.holder(of: slot)?.lease.owner
                // Its own leases it knows best: what it has none for it does not own, or not yet.
                answer = .success(owner == member?.node ? nil : owner)
            } catch {
                answer = .failure(error)
            }
            if case .success(let owner?) = answer { state.withLock { $0.willKnow }?(slot, owner) }
            state.withLock { state in
                state.asking[slot] = nil
                if case .success(let owner?) = answer { state.owners[slot] = owner }
            }
            return answer
        }
    }
}
