/// What waits for one write of an actor: updates of streams that are not to be shown before it, and answers that may show it.
///
/// On the reactor of its actor.
struct AwaitedWrite {
    /// Called with the reason when what was to be shown is not kept.
    typealias Answer = (TrebuchetError?) -> Void

    private struct Update {
        let show: () -> Void
        /// Nil for what is in the next write anew when this one fails.
        let isWanted: (() -> Bool)?
    }

    private var updates: [Update] = []
    private var answers: [Answer] = []
    /// Those of calls that ran in place, which are most.
    var calls: HeldAnswers?
    /// When there are so many updates, those that nobody wants any more are let go of.
    private var most = 1_024

    /// Answers that wait.
    var count: Int { answers.count + (calls?.count ?? 0) }

    mutating func add(_ answer: @escaping Answer) { answers.append(answer) }

    mutating func add(_ show: @escaping () -> Void, while isWanted: (() -> Bool)?) {
        if updates.count >= most {
            updates.removeAll { $0.isWanted?() == false }
            most = max(1_024, 2 * updates.count)
        }
        updates.append(Update(show: show, isWanted: isWanted))
    }

    /// Puts what waited for a write that failed before what waits for this one.
    ///
    /// - Parameter withAnswers: false leaves the answers with the other, for whom they are to fail.
    /// - Returns: what is left of the other.
    mutating func take(_ failed: AwaitedWrite, withAnswers: Bool, _ reuse: (HeldAnswers) -> Void) -> AwaitedWrite {
        var left = failed
        // Who asked for what holds now still waits for it.
        updates = failed.updates.filter { $0.isWanted?() == true } + updates
        left.updates = []
        guard withAnswers else { return left }
        answers = failed.answers + answers
        if let earlier = failed.calls {
            if let later = calls {
                earlier.take(later)
                reuse(later)
            }
            calls = earlier
        }
        return AwaitedWrite()
    }

    /// The write is acknowledged. Updates come before the answers: a caller sees what it has changed before its call returns.
    func succeed() {
        for update in updates { update.show() }
        answer(nil)
    }

    /// What was to be shown is not, or perhaps not, kept.
    func fail(_ error: TrebuchetError) { answer(error) }

    private func answer(_ error: TrebuchetError?) {
        calls?.end(error)
        for answer in answers { answer(error) }
    }
}
