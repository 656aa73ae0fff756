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
        shard.whenStreamsShow(for: call, of: self, .none, outcome.bytesOfResult, for: Self.longestBehindStreams) {
            self.finish(call, outcome)
        }
    }

    /// No answer is kept back for longer by a stream that does not come.
    fileprivate static var longestBehindStreams: Duration { .seconds(1) }

    /// Nor by one that comes from another node, or does not: that is known when the way there and back is over.
    fileprivate static var longestBehindShared: Duration { .seconds(10) }

    func awaitsStreams(of home: SystemShard?) -> Bool {
        askForLacking()
        let ahead = streams.values.filter { !$0.broadcaster.isUpToDate }
        mayAwaitStreams = !beginning.isEmpty || !ahead.isEmpty
        return !beginning.isEmpty || ahead.contains { $0.broadcaster.hub.home === home }
    }

    /// Whether a stream that this node takes from another one is just beginning, or begins here.
    func awaitsSharedStreams(of actor: ActorName) -> Bool {
        if relays?.awaits(actor) == true { return true }
        guard mayAwaitStreams else { return false }
        askForLacking()
        mayAwaitStreams = !haveShown
        return mayAwaitStreams
    }

    /// Writes what is here: where that is not all that a stream needs, the rest is on its way from now on.
    fileprivate func askForLacking() {
        if shard.states.isMarked { catchUpStreams() }
    }

    /// Whether the streams that were asked for show what their actors have been told so far.
    fileprivate func streamsShow(_ awaited: AwaitedStreams) -> Bool { !isToCome(awaited) && haveShown }

    /// Whether streams are still to begin that an answer waits for, beside those that are just beginning.
    fileprivate func isToCome(_ awaited: AwaitedStreams) -> Bool {
        switch awaited {
        case .none: false
        case .of(let actor): running.values.contains { $0.streamedActor == actor } || relays?.awaits(actor) == true
        case .moved(let actor): relays?.awaits(actor) == true
        }
    }

    /// The same for many.
    fileprivate func areToCome() -> (AnswerBehindStreams) -> Bool {
        var unmade: Set<ActorName>?
        return { answer in
            guard case .of(let actor) = answer.awaited else { return self.isToCome(answer.awaited) }
            let actors = unmade ?? Set(self.running.values.lazy.compactMap(\.streamedActor))
            unmade = actors
            return actors.contains(actor) || self.relays?.awaits(actor) == true
        }
    }

    /// The same, but for streams that wait for their actors.
    fileprivate var haveShown: Bool { beginning.isEmpty && streams.values.allSatisfy { $0.broadcaster.isUpToDate } }
}

extension ServerShard {
    /// Calls `done` on this reactor as soon as those streams show what there is that the connection has asked for, or after a while.
    ///
    /// - Parameters:
    ///   - actor: whose owner has made the answer.
    ///   - bytes: of the answer.
    func whenStreamsShow(
        for call: RunningCall, of connection: ServerConnection, movedWith actor: ActorName, _ bytes: Int,
        _ done: @escaping () -> Void
    ) {
        whenStreamsShow(
            for: call, of: connection, .moved(actor), bytes, for: ServerConnection.longestBehindShared, done)
    }

    /// Calls `done` on this reactor as soon as the connection's streams are up to date, and those of that actor have begun.
    func whenStreamsShow(
        for call: RunningCall, of connection: ServerConnection, _ actor: ActorName, _ bytes: Int,
        _ done: @escaping () -> Void
    ) {
        whenStreamsShow(
            for: call, of: connection, .of(actor), bytes, for: ServerConnection.longestBehindShared, done)
    }

    /// - Parameter longest: after that it goes without. It does so sooner where half of the call's time is over: its answer is known,
    ///   and a stream that does not begin is not to cost it.
    fileprivate func whenStreamsShow(
        for call: RunningCall, of connection: ServerConnection, _ awaited: AwaitedStreams, _ bytes: Int,
        for longest: Duration, _ done: @escaping () -> Void
    ) {
        if connection.isOpen { connection.askForLacking() }
        let answer = AnswerBehindStreams(awaited, bytes, done)
        guard connection.isOpen, !connection.streamsShow(awaited), connection.holdBack(call, answer) else {
            return done()
        }
        let now = reactor.now
        let half = Duration.nanoseconds(Int64(clamping: call.deadline > now ? (call.deadline - now) / 2 : 0))
        queue(answer, of: connection, for: min(longest, half))
    }

    /// Calls `done` on this reactor as soon as streams that have begun at the connection show what there is.
    func whenShown(_ connection: ServerConnection, _ done: @escaping () -> Void) {
        // The turn that has begun them is not over.
        queue(AnswerBehindStreams(.none, 0, done), of: connection, for: ServerConnection.longestBehindStreams)
        reactor.execute { self.streamsMayShow(connection) }
    }

    private func queue(
        _ answer: AnswerBehindStreams, of connection: ServerConnection, for time: Duration
    ) {
        let number = connection.name.number
        let queue =
            answersBehindStreams[number] ?? AnswerQueue { [weak self] in self?.answersBehindStreams[number] = nil }
        answersBehindStreams[number] = queue
        queue.add(answer)
        answer.timer = reactor.schedule(after: time) { [weak answer] in answer?.end() }
    }

    /// A stream of the connection has begun, or has not, or has what it waited for.
    @inline(__always)
    func streamsMayShow(_ connection: ServerConnection) {
        if !answersBehindStreams.isEmpty { look(at: connection) }
    }

    private func look(at connection: ServerConnection) {
        let number = connection.name.number
        guard answersBehindStreams[number] != nil else { return }
        // It may end the connection, and with it what waits.
        if connection.isOpen, connection.haveShown { connection.askForLacking() }
        guard let queue = answersBehindStreams[number], !connection.isOpen || connection.haveShown else { return }
        let isToCome = connection.areToCome()
        for answer in queue.take(where: { !connection.isOpen || !isToCome($0) }) { answer.end() }
    }
}

extension CallOutcome {
    /// Those of what a call has returned, as far as it is encoded.
    var bytesOfResult: Int { (try? get())?.byteCount ?? 0 }
}
