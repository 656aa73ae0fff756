internal import Networking
internal import Transports

/// Streams that a client has asked for and does not have yet: answers go behind them, of calls that it repeats and of those that ran
/// where the streams come from.
extension ServerConnection {
    /// Answers a call that ran on another reactor, or on none: what it has changed there is in streams from there that are just beginning,
    /// and their first values take one way more than the answer.
    ///
    /// - Parameter home: nil for an actor that lives on no reactor.
    func finish(_ call: RunningCall, _ outcome: CallOutcome, behindStreamsOf home: SystemShard?) {
        guard mayAwaitStreams, isOpen, home !== shard.states, awaitsStreams(of: home) else {
            return finish(call, outcome)
        }
        shard.whenStreamsShow(self, nil, for: Self.longestBehindStreams) { self.finish(call, outcome) }
    }

    /// No answer is kept back for longer by a stream that does not come.
    private static var longestBehindStreams: Duration { .seconds(1) }

    /// Nor by one that comes from another node, or does not: that is known when the way there and back is over.
    fileprivate static var longestBehindShared: Duration { .seconds(10) }

    private func awaitsStreams(of home: SystemShard?) -> Bool {
        let ahead = streams.values.filter { !$0.broadcaster.isUpToDate }
        mayAwaitStreams = !beginning.isEmpty || !ahead.isEmpty
        return !beginning.isEmpty || ahead.contains { $0.broadcaster.hub.home === home }
    }

    /// Whether a stream that this node takes from another one is just beginning, or begins here.
    func awaitsSharedStreams() -> Bool {
        mayAwaitStreams = !haveShown
        return mayAwaitStreams
    }

    /// Whether the streams that were asked for show what their actors have been told so far.
    ///
    /// - Parameter actor: of it, those count too that wait for the actor to be made.
    fileprivate func streamsShow(_ actor: ActorName?) -> Bool {
        haveShown && (actor == nil || !running.values.contains { $0.streamedActor == actor })
    }

    /// The same, but for streams that wait for their actors.
    fileprivate var haveShown: Bool { beginning.isEmpty && streams.values.allSatisfy { $0.broadcaster.isUpToDate } }
}

extension ServerShard {
    /// Calls `done` on this reactor as soon as those streams show what there is that the connection has asked for, or after a while.
    func whenStreamsShow(_ connection: ServerConnection, _ done: @escaping () -> Void) {
        whenStreamsShow(connection, nil, for: ServerConnection.longestBehindShared, done)
    }

    /// Calls `done` on this reactor as soon as the connection's streams are up to date.
    ///
    /// - Parameter deadline: that of the call. Its answer is known, and a stream that does not begin is not to cost it: after half of
    ///   the time it goes without.
    func whenStreamsShow(
        _ connection: ServerConnection, _ actor: ActorName, until deadline: UInt64, _ done: @escaping () -> Void
    ) {
        let now = reactor.now
        let wait = Duration.nanoseconds(Int64(clamping: deadline > now ? (deadline - now) / 2 : 0))
        whenStreamsShow(connection, actor, for: wait, done)
    }

    /// - Parameters:
    ///   - actor: nil when streams do not count that wait for their actors to be made.
    ///   - wait: after that it goes without.
    fileprivate func whenStreamsShow(
        _ connection: ServerConnection, _ actor: ActorName?, for wait: Duration, _ done: @escaping () -> Void
    ) {
        guard connection.isOpen, !connection.streamsShow(actor) else { return done() }
        let number = connection.name.number
        let waiting = AnswerBehindStreams(actor: actor, done: done)
        waiting.timer = reactor.schedule(after: wait) { [weak self, weak waiting] in
            guard let self, let waiting, !waiting.isOver else { return }
            self.answersBehindStreams[number]?.removeAll { $0 === waiting }
            waiting.end()
        }
        answersBehindStreams[number, default: []].append(waiting)
    }

    /// A stream of the connection has begun, or has not, or has what it waited for.
    @inline(__always)
    func streamsMayShow(_ connection: ServerConnection) {
        if !answersBehindStreams.isEmpty { look(at: connection) }
    }

    private func look(at connection: ServerConnection) {
        let number = connection.name.number
        guard let waiting = answersBehindStreams[number], !connection.isOpen || connection.haveShown else { return }
        // Looked at once for all of them: a client may have many.
        let awaited = connection.isOpen ? Set(connection.running.values.compactMap(\.streamedActor)) : []
        let (others, ready) = (
            waiting.filter { $0.isBehind(awaited) }, waiting.filter { !$0.isBehind(awaited) }
        )
        answersBehindStreams[number] = others.isEmpty ? nil : others
        for answer in ready { answer.end() }
    }
}
