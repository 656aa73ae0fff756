internal import Platform
internal import Synchronization

/// The owners of slots as known to one node: looked up in the coordination store once, and again after the presumed
/// owner refused.
public final class SlotDirectory: Sendable {
    private typealias OwnerLookup = Task<Result<ClusterNode?, ClusterEngineError>, Never>

    /// The known owners and the lookups in progress, under the lock.
    private struct State {
        var owners: [ClusterSlot: ClusterNode] = [:]
        /// Owners that accept no more calls for their slots, although their leases are still valid.
        var excluded: [ClusterSlot: ClusterNode] = [:]
        /// The lookups in progress, which concurrent callers share.
        var lookups: [ClusterSlot: OwnerLookup] = [:]
        /// The pauses before further lookups.
        var pauses: [ClusterSlot: Set<Task<Void, Never>>] = [:]
        var willKnow: (@Sendable (ClusterSlot, ClusterNode) -> Void)?

        /// Returns whether a looked-up owner is excluded; another owner ends the exclusion.
        mutating func isExcluded(_ owner: ClusterNode, _ slot: ClusterSlot) -> Bool {
            guard let excluded = excluded[slot] else { return false }
            if excluded != owner { self.excluded[slot] = nil }
            return excluded == owner
        }
    }

    private let engine: any ClusterEngine
    private let member: ClusterMember?
    private let backoff: Backoff
    private let state = Mutex(State())

    /// Creates a directory.
    ///
    /// - Parameter member: the member of this node, whose own slots need no lookup; nil for a node that owns none.
    public convenience init(_ engine: any ClusterEngine, member: ClusterMember? = nil) {
        self.init(engine, member: member, backoff: Backoff(first: .milliseconds(10), limit: .milliseconds(200)))
    }

    init(_ engine: any ClusterEngine, member: ClusterMember?, backoff: Backoff) {
        self.engine = engine
        self.member = member
        self.backoff = backoff
    }

    /// Calls `body` with the looked-up owner of a slot, before any caller receives it.
    package func beforeAnswers(_ body: @escaping @Sendable (ClusterSlot, ClusterNode) -> Void) {
        state.withLock { $0.willKnow = body }
    }

    /// Returns the owner as `owner(of:)`, as far as it is known without a lookup.
    package func knownOwner(of slot: ClusterSlot) -> ClusterNode? {
        if let member, member.mayStartWork(in: slot) { return member.node }
        return state.withLock { $0.owners[slot] }
    }

    /// Returns the node that owns a slot, which may have changed since the lookup; nil if there is none now.
    public func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> ClusterNode? {
        if let member, member.mayStartWork(in: slot) { return member.node }
        let (known, asking) = state.withLock { state -> (ClusterNode?, OwnerLookup?) in
            if let known = state.owners[slot] { return (known, nil) }
            let asking = state.lookups[slot] ?? startLookup(slot)
            state.lookups[slot] = asking
            return (nil, asking)
        }
        guard let asking else { return known }
        return try await asking.value.get()
    }

    /// Returns the node that owns a slot, and waits for one if there is none.
    ///
    /// - Throws: `unavailable` when there is none after `timeout`, or the coordination store is unreachable.
    public func owner(
        of slot: ClusterSlot, waitingUpTo timeout: Duration
    ) async throws(ClusterEngineError) -> ClusterNode {
        let end = MonotonicClock.now &+ timeout.nanoseconds
        var failures = 0
        while true {
            do throws(ClusterEngineError) {
                if let owner = try await owner(of: slot) { return owner }
            } catch {
                // A lookup changes nothing, so it is repeated after an unknown outcome.
                let mayPass = [.unavailable, .unknownOutcome, .overloaded].contains(error.code)
                guard mayPass, MonotonicClock.now < end else { throw error }
            }
            failures += 1
            let now = MonotonicClock.now
            let left = Duration.nanoseconds(Int64(clamping: end > now ? end - now : 0))
            guard left > .zero, !Task.isCancelled else {
                throw ClusterEngineError(.unavailable, "\(slot) currently has no owner")
            }
            await pause(min(left, backoff.delay(afterFailures: failures)), for: slot)
        }
    }

    /// Pauses for the delay, or until this node itself owns the slot.
    private func pause(_ delay: Duration, for slot: ClusterSlot) async {
        let pause = Task<Void, Never> { try? await Task.sleep(for: delay) }
        state.withLock { _ = $0.pauses[slot, default: []].insert(pause) }
        // The node may have acquired the slot before the pause was recorded.
        if member?.mayStartWork(in: slot) == true { pause.cancel() }
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

    /// For tests: returns true if a caller pauses for the slot.
    func isWaiting(for slot: ClusterSlot) -> Bool { state.withLock { $0.pauses[slot] != nil } }

    /// Ends the pauses for a slot that this node owns from now on.
    package func didAcquire(_ slot: ClusterSlot) {
        for pause in state.withLock({ $0.pauses[slot] }) ?? [] { pause.cancel() }
    }

    /// Removes the owner of a slot, because that node refused or has no subscriber. A newer entry stays.
    public func invalidate(_ slot: ClusterSlot, ownedBy node: ClusterNode) {
        state.withLock { if $0.owners[slot] == node { $0.owners[slot] = nil } }
    }

    /// Removes the owner of a slot, because that node is stopping and has refused. The slot has no owner then until another node
    /// has acquired it: a call that is sent to a stopping node again may arrive after the node has left, with an unknown outcome.
    package func exclude(_ node: ClusterNode, from slot: ClusterSlot) {
        state.withLock { state in
            if state.owners[slot] == node { state.owners[slot] = nil }
            state.excluded[slot] = node
        }
    }

    /// Removes the owner of a slot that this node is about to own.
    package func forget(_ slot: ClusterSlot) { state.withLock { $0.owners[slot] = nil } }

    /// Starts a lookup. Called under the lock.
    private func startLookup(_ slot: ClusterSlot) -> OwnerLookup {
        Task {
            var answer: Result<ClusterNode?, ClusterEngineError>
            do throws(ClusterEngineError) {
                let owner = try await engine.owner(of: slot)?.lease.owner
                // The member knows its own leases best: without a lease it does not own the slot, or not yet.
                answer = .success(owner == member?.node ? nil : owner)
            } catch {
                answer = .failure(error)
            }
            if case .success(let owner?) = answer {
                if state.withLock({ $0.isExcluded(owner, slot) }) {
                    answer = .success(nil)
                } else {
                    state.withLock { $0.willKnow }?(slot, owner)
                }
            }
            state.withLock { state in
                state.lookups[slot] = nil
                // The node may have been excluded meanwhile: its caller looks the owner up again.
                if case .success(let owner?) = answer, !state.isExcluded(owner, slot) { state.owners[slot] = owner }
            }
            return answer
        }
    }
}
