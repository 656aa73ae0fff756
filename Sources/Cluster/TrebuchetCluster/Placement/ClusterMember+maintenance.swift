internal import Platform
internal import Synchronization

/// The periodic work of a member.
extension ClusterMember {
    /// Executes one round: renews due leases, reads the live nodes, acquires and hands over slots. Errors of the
    /// coordination store are retried in the next round.
    package func round() async {
        state.withLock { $0.contact.beginRound() }
        defer { state.withLock { $0.contact.endRound() } }
        expire()
        await renew()
        await retryReleases()
        guard await checkGeneration(), await refreshNodes() else { return }
        await claim()
        beginHandovers()
    }

    /// For tests: returns when all current handovers are complete.
    package func finishHandovers() async {
        for handover in state.withLock({ Array($0.handovers.values) }) { await handover.value }
    }

    // MARK: Liveness

    /// A request that maintains the node's liveness or a lease.
    private enum MaintenanceStep: Sendable {
        case announce, withdraw
        case renew(SlotLease)
    }

    private func renew() async {
        let now = clock()
        let steps = state.withLock { state -> [MaintenanceStep] in
            var steps: [MaintenanceStep] = []
            if state.isDraining {
                if !state.isWithdrawn { steps.append(.withdraw) }
            } else if state.announcedAt.map({ now >= $0 &+ span / 3 }) ?? true {
                steps.append(.announce)
            }
            return steps + state.leases.due(at: now).map { .renew($0) }
        }
        await inFlight(steps) { step in
            switch step {
            case .announce: await self.announce()
            case .withdraw: await self.withdraw()
            case .renew(let lease): await self.renew(lease)
            }
        }
    }

    private func announce() async {
        let now = clock()
        await performRequest(isWrite: true) { () async throws(ClusterEngineError) in
            try await engine.renewNode(node, info: state.withLock { $0.info }, duration: settings.leaseDuration)
            state.withLock { $0.announcedAt = now }
        }
    }

    private func withdraw() async {
        await performRequest { () async throws(ClusterEngineError) in
            try await engine.removeNode(node)
            state.withLock { $0.isWithdrawn = true }
        }
    }

    private func renew(_ lease: SlotLease) async {
        let askedAt = clock()
        await performRequest(isWrite: true) { () async throws(ClusterEngineError) in
            let isRenewed = try await engine.renewLease(lease, duration: settings.leaseDuration)
            state.withLock { state in
                if isRenewed {
                    state.leases.renewed(lease, askedAt: askedAt)
                } else if state.leases.lose(lease) {
                    state.pendingChanges.append(.lost(lease))
                }
            }
            notifyObservers()
        }
    }

    /// Returns true if the coordination store has the generation that this node began with: no slot of an emptied one
    /// is acquired.
    private func checkGeneration() async -> Bool {
        let known = state.withLock { $0.generation }
        let isSame = await performRequest { () async throws(ClusterEngineError) -> Bool in
            guard let known else {
                let begun = try await engine.createGeneration()
                state.withLock { $0.generation = begun }
                return true
            }
            guard try await engine.generation() == known else { throw .generationLost }
            return true
        }
        return isSame ?? false
    }

    /// Reads the live nodes, and makes a new plan if they have changed. Returns false if they are unknown.
    private func refreshNodes() async -> Bool {
        let live = await performRequest { () async throws(ClusterEngineError) in try await engine.nodes() }
        guard let live else { return false }
        // After the response: a response of a new server is never taken for one of the server before.
        let (connections, now) = (engine.connectionCount, clock())
        let change: (nodes: [ClusterNode], isOther: Bool)? = state.withLock { state in
            if let known = state.connections, known != connections {
                state.reconnectedUntil = now &+ settings.reconnectionGrace.nanoseconds
            }
            state.connections = connections
            var infos = Dictionary(live.map { ($0.node, $0.info) }) { first, _ in first }
            // This node is considered gone, although it is not: it first announces itself again.
            guard state.isDraining || infos[node] != nil else {
                state.announcedAt = nil
                return nil
            }
            state.liveReads += 1
            if now < state.reconnectedUntil { infos.merge(state.infos) { new, _ in new } }
            let nodes = infos.keys.sorted { $0.description < $1.description }
            defer { (state.live, state.infos) = (nodes, infos) }
            return (nodes, state.live != nodes)
        }
        guard let change else { return false }
        if change.isOther {
            let plan = SlotAssignment(change.nodes)
            state.withLock { $0.plan = plan }
        }
        return true
    }

    // MARK: Acquiring slots

    private func claim() async {
        let now = clock()
        let (claims, generation) = state.withLock { state -> ([ClusterSlot], String?) in
            guard !state.isDraining, state.failure == nil, state.phase != .ended else { return ([], nil) }
            let claims = state.leases.claims(
                state.plan.slots(of: node), atMost: settings.concurrentHandovers * 2, now: now)
            return (claims, state.generation)
        }
        await inFlight(claims) { await self.claim($0, in: generation) }
    }

    private func claim(_ slot: ClusterSlot, in generation: String?) async {
        let askedAt = clock()
        await performRequest { () async throws(ClusterEngineError) in
            let claim = try await engine.acquireSlot(
                slot, for: node, duration: settings.leaseDuration, generation: generation)
            if case .acquired(let lease) = claim { listener?.slotWillBeAssigned(lease) }
            let now = clock()
            try state.withLock { state throws(ClusterEngineError) in
                guard state.phase != .ended, state.failure == nil else { return }
                switch claim {
                case .ownedByOther(let holder): try state.leases.recordOwner(holder, at: now)
                case .acquired(let lease):
                    if try state.leases.acquired(lease, askedAt: askedAt, now: now) {
                        state.hasLapsed = false
                        state.pendingChanges.append(.assigned(lease))
                    }
                }
            }
            notifyObservers()
        }
    }

    // MARK: Handing over slots

    private func beginHandovers() {
        let now = clock()
        state.withLock { state in
            let (isDraining, plan, node) = (state.isDraining, state.plan, node)
            let leaving = state.leases.beginHandovers(atMost: handoverLimit(state), at: now) { slot in
                isDraining || plan.owner(of: slot).map { $0 != node } ?? false
            }
            state.pendingChanges += leaving.map { .revoking($0) }
        }
        notifyObservers()
    }

    /// Returns the maximum number of slots in handover. A draining node releases as many as the other nodes acquire in a round, so
    /// that it ends in time; without other nodes it releases all.
    private func handoverLimit(_ state: ClusterMember.State) -> Int {
        guard state.isDraining else { return settings.concurrentHandovers }
        let others = state.live.count { $0 != node }
        return others == 0 ? ClusterSlot.count : min(ClusterSlot.count, settings.concurrentHandovers * 2 * others)
    }

    /// Stops owning a slot, then releases it in the coordination store.
    func releaseSlot(_ lease: SlotLease) async {
        guard state.withLock({ $0.leases.dropLease(lease) }) else { return }
        await release(lease)
    }

    private func release(_ lease: SlotLease) async {
        await performRequest { () async throws(ClusterEngineError) in
            _ = try await engine.releaseLease(lease)
            state.withLock { $0.leases.didRelease(lease) }
        }
    }

    /// Retries unanswered releases of earlier rounds, and ends handovers whose listener takes too long.
    private func retryReleases() async {
        let now = clock()
        let timeout = settings.handoverTimeout.nanoseconds
        let releases = state.withLock { state in
            for lease in state.leases.leaving(since: now > timeout ? now - timeout : 0)
            where state.leases.dropLease(lease) {
                state.pendingChanges.append(.lost(lease))
            }
            return state.leases.released.values.sorted { $0.slot < $1.slot }
        }
        notifyObservers()
        await inFlight(releases) { await self.release($0) }
    }

    // MARK: Requests

    /// Sends a request to the coordination store. Returns nil if it failed. An error that waiting does not resolve
    /// ends the member.
    ///
    /// - Parameter isWrite: whether the response confirms that the coordination store accepts writes.
    @discardableResult
    private func performRequest<Answer>(
        isWrite: Bool = false, _ body: () async throws(ClusterEngineError) -> Answer
    ) async -> Answer? {
        let begunAt = clock()
        state.withLock { $0.contact.beginRequest(at: begunAt) }
        func end(_ error: ClusterEngineError?) {
            let now = clock()
            state.withLock { $0.contact.endRequest(begunAt: begunAt, at: now, isWrite: isWrite, error: error) }
        }
        do throws(ClusterEngineError) {
            let answer = try await body()
            end(nil)
            return answer
        } catch {
            end(error)
            switch error.code {
            case .dataLoss, .closed, .invalid, .tooLarge: fail(error)
            default: break
            }
            return nil
        }
    }

    /// Runs `body` for each item, with a limited concurrency.
    private func inFlight<Item: Sendable>(
        _ items: [Item], _ body: @escaping @Sendable (Item) async -> Void
    ) async {
        await withTaskGroup(of: Void.self) { group in
            for (index, item) in items.enumerated() {
                if index >= settings.requestsInFlight { await group.next() }
                group.addTask { await body(item) }
            }
        }
    }
}
