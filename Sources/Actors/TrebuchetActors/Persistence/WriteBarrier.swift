/// The write barrier of an actor: stream updates that must not be shown before one write, and responses that may show its
/// changes.
///
/// Accessed on the reactor of its actor.
struct WriteBarrier {
    /// Called after the write, with an error if it failed.
    typealias Completion = (TrebuchetError?) -> Void

    /// A stream update that waits for the write.
    private struct Update {
        let publish: () -> Void
        /// Nil for an update that the next write creates again after a failure.
        let hasReceivers: (() -> Bool)?
    }

    private var updates: [Update] = []
    private var responses: [Completion] = []
    /// The responses of calls that ran in place, which are the majority.
    var calls: CommitGate?
    /// The number of updates at which those without receivers are removed.
    private var most = 1_024

    /// The number of waiting responses.
    var count: Int { responses.count + (calls?.count ?? 0) }

    mutating func addCompletion(_ answer: @escaping Completion) { responses.append(answer) }

    mutating func addPublication(_ show: @escaping () -> Void, while isWanted: (() -> Bool)?) {
        if updates.count >= most {
            updates.removeAll { $0.hasReceivers?() == false }
            most = max(1_024, 2 * updates.count)
        }
        updates.append(Update(publish: show, hasReceivers: isWanted))
    }

    /// Inserts the entries of a failed write before those of this one.
    ///
    /// - Parameter withAnswers: false leaves the responses in the failed barrier, so that they can fail.
    /// - Returns: the rest of the failed barrier.
    mutating func insertEntries(of failed: WriteBarrier, withAnswers: Bool, _ reuse: (CommitGate) -> Void)
        -> WriteBarrier
    {
        var left = failed
        // Requests for the current value still wait for it.
        updates = failed.updates.filter { $0.hasReceivers?() == true } + updates
        left.updates = []
        guard withAnswers else { return left }
        responses = failed.responses + responses
        if let earlier = failed.calls {
            if let later = calls {
                earlier.appendEntries(of: later)
                reuse(later)
            }
            calls = earlier
        }
        return WriteBarrier()
    }

    /// Completes the entries after the write is acknowledged. Updates come before the responses, so that a caller sees its
    /// changes before its call returns.
    func succeed() {
        for update in updates { update.publish() }
        answer(nil)
    }

    /// Fails the responses, because the changes are not stored or their outcome is unknown.
    func fail(_ error: TrebuchetError) { answer(error) }

    private func answer(_ error: TrebuchetError?) {
        calls?.answerAll(error)
        for answer in responses { answer(error) }
    }
}
