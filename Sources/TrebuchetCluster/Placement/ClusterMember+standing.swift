internal import Synchronization

/// Whether a node can serve what lives on one node of the cluster: for health checks, metrics and the log alike.
extension ClusterMember {
    /// What the engine failed with last, or that it does not answer; nil when it does.
    package var trouble: ClusterEngineError? {
        let now = clock()
        return state.withLock { $0.contact.trouble(at: now) }
    }

    /// Why the node cannot serve now; nil when it can. It can while the engine has confirmed it within the time of a lease, and it owns slots
    /// or sees who does. So an engine that is away for less than a lease is no problem.
    package var problem: String? {
        let now = clock()
        return state.withLock { state in
            if let failure = state.failure { return failure.message }
            // That a node is to end is said elsewhere; the engine confirms it no more.
            guard !state.isDraining else { return nil }
            guard state.phase != .ended else { return "the node has left the cluster" }
            let trouble = state.contact.trouble(at: now).map { ": \($0.message)" } ?? ""
            guard let confirmed = state.contact.confirmedAt, !state.live.isEmpty else {
                return "the node is not part of the cluster yet\(trouble)"
            }
            if now >= confirmed &+ span {
                return "the engine has confirmed nothing for \((now - confirmed) / 1_000_000_000) s\(trouble)"
            }
            if state.hasLapsed, state.book.isEmpty, !state.plan.slots(of: node).isEmpty {
                return "the node owns no slots: the engine did not renew its leases in time\(trouble)"
            }
            return nil
        }
    }

    /// The engine has refused a write under this lease because it has lost what it kept. Nothing is owned from then on.
    package func didLose(_ lease: SlotLease, _ error: ClusterEngineError) {
        // One of an earlier generation says nothing of this one.
        guard error.code == .dataLoss, state.withLock({ $0.book.holds(lease) }) else { return }
        fail(error)
    }

    /// Takes part again after `run()` has thrown `dataLoss`, in the generation that the engine has then.
    package func beginAgain() {
        state.withLock { state in
            guard state.failure?.code == .dataLoss, state.phase == .ended, !state.isDraining else { return }
            var next = ClusterMember.State(book: LeaseBook(span: span), info: state.info)
            // What is under way ends in its order.
            (next.contact, next.handovers) = (state.contact, state.handovers)
            (next.news, next.isTelling) = (state.news, state.isTelling)
            next.contact.beginAgain()
            state = next
        }
    }
}
