internal import Synchronization

/// The readiness of a node to serve actors of the cluster, for health checks, metrics and the log.
extension ClusterMember {
    /// The last error of the coordination store, or its silence; nil when it responds.
    package var engineError: ClusterEngineError? {
        let now = clock()
        return state.withLock { $0.contact.engineError(at: now) }
    }

    /// The reason why the node cannot serve now; nil if it can. It can if the coordination store has confirmed it
    /// within the duration of a lease, and it owns slots or sees their owners. So an outage shorter than a lease is no
    /// problem.
    package var problem: String? {
        let now = clock()
        return state.withLock { state in
            if let failure = state.failure { return failure.message }
            // A draining node is reported elsewhere; the coordination store no longer confirms it.
            guard !state.isDraining else { return nil }
            guard state.phase != .ended else { return "the node has left the cluster" }
            let detail = state.contact.engineError(at: now).map { ": \($0.message)" } ?? ""
            guard let confirmed = state.contact.confirmedAt, !state.live.isEmpty else {
                return "the node has not joined the cluster yet\(detail)"
            }
            if now >= confirmed &+ span {
                return
                    "no confirmation of the coordination store for \((now - confirmed) / 1_000_000_000) s\(detail)"
            }
            if state.hasLapsed, state.leases.isEmpty, !state.plan.slots(of: node).isEmpty {
                return "the node owns no slots: its leases were not renewed in time\(detail)"
            }
            return nil
        }
    }

    /// Handles a write under this lease that was refused because of a data loss. The node owns nothing from then on.
    package func didLose(_ lease: SlotLease, _ error: ClusterEngineError) {
        // An error of an earlier generation does not concern this one.
        guard error.code == .dataLoss, state.withLock({ $0.leases.isOwned(lease) }) else { return }
        fail(error)
    }

    /// Restarts the member after `run()` has thrown `dataLoss`, in the current generation of the coordination store.
    package func restart() -> Bool {
        state.withLock { state in
            guard state.failure?.code == .dataLoss, state.phase == .ended, !state.isDraining else { return false }
            var next = ClusterMember.State(leases: LeaseTable(span: span), info: state.info)
            // Running work ends in its order.
            (next.contact, next.handovers) = (state.contact, state.handovers)
            (next.pendingChanges, next.isNotifying) = (state.pendingChanges, state.isNotifying)
            next.contact.reset()
            state = next
            return true
        }
    }
}
