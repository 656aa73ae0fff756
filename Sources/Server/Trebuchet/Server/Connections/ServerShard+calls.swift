internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
package import TrebuchetActors
internal import TrebuchetWire

extension ServerShard {
    /// Calls a synchronous method of an actor of this reactor. The result is in `reply`.
    @inline(__always)
    func callInPlace(
        _ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message
    ) throws {
        // Not reference-counted: the shard retains everything a call reads for longer than the call.
        let coder = Unmanaged.passUnretained(coder)
        Unmanaged.passUnretained(reactor)._withUnsafeGuaranteedRef { $0.recordActivity(method.label) }
        reply.pointee.reset(keepingAtMost: Self.retainedReplyCapacity)
        var arguments = _CallArguments(message: message.bytes, envelope: message.envelope, coder: coder)
        var result = _CallReply(reply, coder: coder)
        try record.call(method, &arguments, &result)
    }

    /// Encodes the result of a call into `reply`; returns nil for a method without one. Throws the error of a failed call.
    func encodeResult(_ outcome: CallOutcome) throws -> UnsafeRawBufferPointer? {
        let result = try outcome.get()
        reply.pointee.reset(keepingAtMost: Self.retainedReplyCapacity)
        try result.write(with: coder, into: &reply.pointee)
        return result.isVoid ? nil : reply.pointee.bytes
    }

    /// Counts a call that has run in place. The clock is read once for several successive calls of one method, as long as their
    /// total duration fits into the first bucket: then each of them does.
    @inline(__always)
    func didCall(_ row: Int) {
        if row != run.row { beginRun(row) }
        run.count &+= 1
        if run.count >= run.most { didWork(until: MonotonicClock.now) }
    }

    @inline(never)
    private func beginRun(_ row: Int) {
        if run.count > 0 { didWork(until: MonotonicClock.now) }
        run.row = row
        reactor.measure(self)
    }

    /// Counts the calls so far and returns the start time of the next one.
    func beginsNow() -> UInt64 {
        let now = MonotonicClock.now
        if run.count > 0 { didWork(until: now) }
        return now
    }

    /// Runs a method of an actor of this reactor, or of none. Returns false when the actor has been deactivated; nothing has been
    /// done then.
    func run(
        _ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message,
        _ call: InFlightCall, _ completion: @escaping CallCompletion
    ) -> Bool {
        guard let observed = call.observedCall else {
            return runWithMetadata(method, of: record, message, call, completion)
        }
        return observed.during { runWithMetadata(method, of: record, message, call, completion) }
    }

    private func runWithMetadata(
        _ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message,
        _ call: InFlightCall, _ completion: @escaping CallCompletion
    ) -> Bool {
        guard let metadata = call.metadata else {
            return runUnobserved(method, of: record, message, call, completion)
        }
        return CallMetadata.running(metadata) { runUnobserved(method, of: record, message, call, completion) }
    }

    private func runUnobserved(
        _ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message,
        _ call: InFlightCall, _ completion: @escaping CallCompletion
    ) -> Bool {
        let instance = record.actorInstance
        guard instance.enter() else { return false }
        let recorded = record.persisted == nil ? nil : call.execution?.record
        if let recorded, let refusal = record.recordCallStart(recorded) {
            instance.removeUser()
            completion(.failure(refusal))
            return true
        }
        let observed = call.observedCall
        let completion: CallCompletion = { outcome in
            instance.removeUser()
            let outcome = outcome.mapError { error -> any Error in
                self.hidesErrors(of: method, record.type) ? RedactedError.hiding(error) : error
            }
            guard let recorded else { return record.whenWritten(outcome, observed, completion) }
            record.whenWritten(outcome, of: recorded, observed, { self.response(of: $0) }, completion)
        }
        do {
            if method.runsInPlace, record.home === states, !instance.isStarting {
                try callInPlace(record, method, message)
                completion(.success(_CallResult(encoded: Array(reply.pointee.bytes))))
            } else {
                calls.flush()
                CallTask.start(record, try states.operation(record, method, message), call, completion)
            }
        } catch {
            completion(.failure(error))
        }
        return true
    }

    // MARK: Recorded responses

    /// Returns the recorded form of an outcome.
    func response(of outcome: CallOutcome) -> ServerIdempotencyCache.Memory.Response {
        do {
            return .success(try encodeResult(outcome).map { Array($0) } ?? [])
        } catch {
            let failure = CallFailure(error, of: "the method", coder: coder, context.disclosure)
            return .failure(
                TrebuchetError(.init(failure.code), failure.message, type: failure.type, data: failure.data))
        }
    }

    /// Removes recorded responses after their time.
    func forgetResponsesLater(after wait: Duration) {
        guard !willForgetResponses else { return }
        willForgetResponses = true
        reactor.schedule(after: wait) { [weak self] in
            guard let self else { return }
            self.willForgetResponses = false
            if let next = self.idempotencyCache.removeExpired(at: self.reactor.now) {
                self.forgetResponsesLater(after: next)
            }
        }
    }

    /// Ends a connection that its client has left, if it still exists and belongs to the principal.
    func closeSession(_ name: CallSessionID, of principal: PrincipalName?) {
        guard let connection = connections[name.number], connection.name == name,
            connection.callerConnection?.principal?.name == principal
        else { return }
        connection.link.abort()
        connection.linkDidClose()
    }

    // MARK: Calls and responses between reactors

    /// Scans a message from another reactor again; returns nil when too many messages are being handled.
    func withMessage<Result>(_ bytes: [UInt8], _ body: (borrowing Message) -> Result) -> Result? {
        bytes.withUnsafeBytes { withMessage($0, body) }
    }

    /// Scans a message; returns nil when it is malformed, or too many messages are being handled.
    package func withMessage<Result>(
        _ bytes: UnsafeRawBufferPointer, _ body: (borrowing Message) -> Result
    ) -> Result? {
        guard let scratch = scans.reserve() else { return nil }
        defer { scans.release() }
        guard (try? scratch.pointee.scan(bytes)) != nil else { return nil }
        return body(Message(bytes: bytes, envelope: UnsafePointer(scratch)))
    }

    /// Runs `answer` on this reactor. Call from another reactor or a thread of the pool.
    ///
    /// Responses that leave a reactor of this server go together at the end of its turn, behind the changes of their calls.
    ///
    /// - Parameter count: The number of responses in `answer`.
    func deliver(from home: SystemShard?, answers count: Int = 1, _ answer: @escaping @Sendable () -> Void) {
        // This shard must not be accessed from the other reactor.
        guard let home, home.reactor.isCurrent, let there = home.serverShard else { return reactor.execute(answer) }
        there.enqueueResponses(answer, count, for: reactor)
    }

    private func enqueueResponses(_ answer: @escaping @Sendable () -> Void, _ count: Int, for reactor: Reactor) {
        states.callDidEnd()
        if let index = outgoing.firstIndex(where: { $0.reactor === reactor }) {
            outgoing[index].append(answer, count)
        } else {
            var answers = OutgoingResponses(to: reactor)
            answers.append(answer, count)
            outgoing.append(answers)
        }
        guard !hasOutgoing else { return }
        hasOutgoing = true
        self.reactor.atEndOfTurn(self)
    }
}

// Defined here, since a property of another module would be a function call.
extension ActorInstance {
    /// Indicates whether calls have been started in tasks that have not begun to run.
    var isStarting: Bool { starting.load(ordering: .relaxed) > 0 }

    func didRunInPlace() { wasCalled.store(true, ordering: .relaxed) }
}

extension SystemShard {
    /// Indicates whether a state has changed and not all subscribers have been notified.
    var isMarked: Bool { hasMarked.load(ordering: .relaxed) }
}

/// Responses that wait for the end of the turn.
struct OutgoingResponses {
    let reactor: Reactor
    /// Each part is sent separately; that reactor does other work between parts.
    private var parts: [[@Sendable () -> Void]] = []
    /// The number of responses in the last part.
    private var count = 0
    private static let atOnce = 64

    init(to reactor: Reactor) { self.reactor = reactor }

    mutating func append(_ answer: @escaping @Sendable () -> Void, _ answers: Int) {
        if parts.isEmpty || count >= Self.atOnce {
            parts.append([])
            count = 0
        }
        parts[parts.count - 1].append(answer)
        count += answers
    }

    mutating func send() {
        guard !parts.isEmpty else { return }
        var ready: [[@Sendable () -> Void]] = []
        swap(&ready, &parts)
        count = 0
        for part in ready { reactor.execute { for answer in part { answer() } } }
    }
}

extension ServerShard: BatchTimed {
    private static let shortCall: UInt64 = 50_000
    private static let maximumConsecutive: UInt64 = 16

    /// Successive calls of one method whose time has not been measured.
    struct CallRun {
        var row = -1
        var count: UInt64 = 0
        /// The number of calls after which the time is measured.
        var most: UInt64 = 1
    }

    package func didWork(until now: UInt64) {
        let duration = now &- reactor.workBegan
        counts.count(row: run.row, run.count, duration: duration)
        run = CallRun(most: duration <= Self.shortCall ? min(run.most &* 2, Self.maximumConsecutive) : 1)
        reactor.didMeasure(until: now)
    }
}

extension ServerShard: EndOfTurnTask {
    package func endOfTurn() {
        hasOutgoing = false
        // The changes of the calls go first, so that callers see them before the responses.
        guard states.publishMarked() else {
            // Later responses wait for later changes.
            var waiting = outgoing.map { OutgoingResponses(to: $0.reactor) }
            swap(&waiting, &outgoing)
            return states.whenPublished { [self] in
                router?.catchUpFeeds()
                for index in waiting.indices { waiting[index].send() }
            }
        }
        router?.catchUpFeeds()
        for index in outgoing.indices { outgoing[index].send() }
    }
}
