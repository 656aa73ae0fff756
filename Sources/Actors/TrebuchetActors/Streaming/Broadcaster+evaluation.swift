internal import Transports

/// The versions of a filter's state that are evaluated on another thread. Responses of calls that changed the state wait for them.
struct AwaitedEvaluation {
    /// The newest version whose evaluation was announced, and the newest evaluated one.
    fileprivate(set) var expected: UInt64 = 0
    fileprivate(set) var evaluated: UInt64 = 0
    fileprivate var waiters: [(version: UInt64, body: () -> Void)] = []
}

extension Broadcaster {
    /// The version whose evaluation is under way; nil if the filter is up to date.
    package var versionInEvaluation: UInt64? {
        end == nil && evaluation.expected > evaluation.evaluated ? evaluation.expected : nil
    }

    /// Announces the evaluation of a version, on any thread. Responses that leave the state's reactor afterwards arrive later.
    func expectEvaluation(of version: UInt64) {
        onReactor { broadcaster in
            guard broadcaster.end == nil, !broadcaster.subscriptions.isEmpty else { return }
            broadcaster.evaluation.expected = max(broadcaster.evaluation.expected, version)
            broadcaster.shard.setInEvaluation(broadcaster, broadcaster.versionInEvaluation != nil)
        }
    }

    /// Reports that a version is evaluated and that its update was sent, on any thread.
    func didEvaluate(_ version: UInt64) {
        onReactor { broadcaster in
            broadcaster.evaluation.evaluated = max(broadcaster.evaluation.evaluated, version)
            if broadcaster.versionInEvaluation == nil { broadcaster.shard.setInEvaluation(broadcaster, false) }
            broadcaster.resumeWaiters(upTo: broadcaster.evaluation.evaluated)
        }
    }

    /// Returns whether a version is evaluated or the stream has ended. On the shard's reactor.
    package func isEvaluated(_ version: UInt64) -> Bool {
        end != nil || subscriptions.isEmpty || evaluation.evaluated >= version
    }

    /// Calls `body` when a version is evaluated or the stream ends. On the shard's reactor.
    package func whenEvaluated(_ version: UInt64, _ body: @escaping () -> Void) {
        evaluation.waiters.append((version, body))
    }

    /// Ends the evaluation: there are no subscribers.
    func endEvaluation() {
        guard evaluation.expected > 0 else { return }
        evaluation.expected = 0
        shard.setInEvaluation(self, false)
        resumeWaiters(upTo: .max)
    }

    private func resumeWaiters(upTo version: UInt64) {
        guard !evaluation.waiters.isEmpty else { return }
        let ready = evaluation.waiters.filter { $0.version <= version }
        evaluation.waiters.removeAll { $0.version <= version }
        for waiter in ready { waiter.body() }
    }

    /// Runs a body like the handling of an event, in order with the events.
    private func onReactor(_ body: @escaping @Sendable (Broadcaster) -> Void) {
        if shard.isHome(of: producer), shard.reactor.isCurrent { return body(self) }
        shard.reactor.execute { body(self) }
    }
}
