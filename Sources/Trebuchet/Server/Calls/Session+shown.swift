internal import Networking

/// Streams that a client has asked for and does not have yet: the answer of a call that it repeats goes behind them.
extension Session {
    /// Whether the streams that were asked for show what their actors have been told so far.
    ///
    /// - Parameter actor: of it, those count too that wait for the actor to be made.
    fileprivate func streamsShow(_ actor: ActorName) -> Bool {
        haveShown && !running.values.contains { $0.streamedActor == actor }
    }

    /// The same, but for streams that wait for their actors.
    fileprivate var haveShown: Bool { beginning.isEmpty && streams.values.allSatisfy { $0.node.isUpToDate } }
}

extension ServerShard {
    /// Calls `done` on this reactor as soon as the session's streams are up to date.
    ///
    /// - Parameter deadline: that of the call. Its answer is known, and a stream that does not begin is not to cost it: after half of
    ///   the time it goes without.
    func whenStreamsShow(
        _ session: Session, _ actor: ActorName, until deadline: UInt64, _ done: @escaping () -> Void
    ) {
        guard session.isOpen, !session.streamsShow(actor) else { return done() }
        let number = session.name.number
        let waiting = AnswerBehindStreams(actor: actor, done: done)
        let now = reactor.now
        let wait = Duration.nanoseconds(Int64(clamping: deadline > now ? (deadline - now) / 2 : 0))
        waiting.timer = reactor.schedule(after: wait) { [weak self, weak waiting] in
            guard let self, let waiting, !waiting.isOver else { return }
            self.answersBehindStreams[number]?.removeAll { $0 === waiting }
            waiting.end()
        }
        answersBehindStreams[number, default: []].append(waiting)
    }

    /// A stream of the session has begun, or has not, or has what it waited for.
    @inline(__always)
    func streamsMayShow(_ session: Session) {
        if !answersBehindStreams.isEmpty { look(at: session) }
    }

    private func look(at session: Session) {
        let number = session.name.number
        guard let waiting = answersBehindStreams[number], !session.isOpen || session.haveShown else { return }
        // Looked at once for all of them: a client may have many.
        let awaited = session.isOpen ? Set(session.running.values.compactMap(\.streamedActor)) : []
        let others = waiting.filter { awaited.contains($0.actor) }
        answersBehindStreams[number] = others.isEmpty ? nil : others
        for answer in waiting where !awaited.contains(answer.actor) { answer.end() }
    }
}

/// An answer that waits for streams. On its shard's reactor.
final class AnswerBehindStreams {
    let actor: ActorName
    var timer: Timer?
    private let done: () -> Void
    private(set) var isOver = false

    init(actor: ActorName, done: @escaping () -> Void) {
        self.actor = actor
        self.done = done
    }

    func end() {
        guard !isOver else { return }
        isOver = true
        timer?.cancel()
        done()
    }
}
