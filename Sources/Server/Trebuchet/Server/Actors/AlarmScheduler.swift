internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// Delivers the alarms of the actors of one store: one timer for the next one, however many wait. A server in a cluster has one for
/// its own actors, and one for those that live on one server of several.
/// Only on the reactor of its first shard, except for constants and methods that say otherwise.
final class AlarmScheduler: Sendable {
    /// The longest time without a look at the time of day: a clock that jumps forward is noticed within it.
    static let maximumWait = Duration.seconds(30)
    /// The delays before rows whose delivery failed are read again.
    private static let backoff = Backoff(first: .seconds(1), limit: .seconds(60))
    /// The number of attempts to reach an actor that is deactivated at the same time.
    private static let activationAttempts = 3

    private let rows: any AlarmRowSource
    /// The router of the actors, if they live on one server of several.
    private let router: (any RemoteRouter)?
    private let shards: [ServerShard]
    private let context: ServerContext
    private let clock: AlarmClock
    private let caller = Caller(connection: CallerConnection(ofServer: (), isShared: true))
    private let state: LoopVariable<State>
    /// Set when no further delivery may begin. Read on any thread.
    private let isStopped = Atomic<Bool>(false)

    /// The rows, the timers, and the callers of `stop`.
    private struct State {
        var sweep: AlarmSweep
        var isRunning = false
        var timer: LoopTimer?
        var retryTimer: LoopTimer?
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// - Parameter router: the router of the actors, if they live on one server of several.
    init(
        _ rows: any AlarmRowSource, of router: (any RemoteRouter)? = nil, _ shards: [ServerShard],
        _ context: ServerContext, _ clock: AlarmClock
    ) {
        (self.rows, self.router, self.shards, self.context, self.clock) = (rows, router, shards, context, clock)
        state = LoopVariable(
            State(sweep: AlarmSweep(concurrent: context.limits.alarms.concurrent)), on: shards[0].reactor)
        rows.whenRowsAppear { [weak self] in self?.didSchedule(0) }
    }

    private var reactor: Reactor { shards[0].reactor }

    // MARK: From any thread

    /// Starts the delivery.
    func start() {
        reactor.execute {
            self.state.value.isRunning = true
            self.advance()
        }
    }

    /// Reports that the next alarm of an actor was written with this time.
    func didSchedule(_ time: Int64) {
        reactor.execute { [weak self] in
            guard let self else { return }
            self.state.value.sweep.didWrite(time)
            self.advance()
        }
    }

    /// Tries failed deliveries again: an actor was exposed.
    func retry() { reactor.execute { [weak self] in self?.restart() } }

    /// Looks at the clock, which a test has changed.
    func checkClock() async { await reactor.perform { self.resume() } }

    /// Begins no more deliveries, and waits for those in flight.
    func stop(within limit: Duration) async {
        let reactor = reactor
        try? await TimeLimit.run(limit, on: reactor) {
            await withCheckedContinuation { continuation in
                reactor.execute {
                    self.cancel()
                    self.state.value.waiting.append(continuation)
                    self.resumeWaiting()
                }
            }
        }
        await reactor.perform {
            for waiter in self.state.value.waiting { waiter.resume() }
            self.state.value.waiting = []
        }
    }

    /// Begins no more deliveries.
    func stop() { reactor.run { self.cancel() } }

    // MARK: The sweep

    private func cancel() {
        isStopped.store(true, ordering: .releasing)
        state.value.timer?.cancel()
        state.value.retryTimer?.cancel()
        (state.value.timer, state.value.retryTimer) = (nil, nil)
    }

    private func resumeWaiting() {
        guard state.value.sweep.inFlightCount == 0 else { return }
        for waiter in state.value.waiting { waiter.resume() }
        state.value.waiting = []
    }

    private func advance() {
        guard state.value.isRunning, !isStopped.load(ordering: .acquiring) else { return }
        while true {
            switch state.value.sweep.next() {
            case .deliver(let row): deliver(row)
            case .read(let name, let limit): read(after: name, limit)
            case .none: return
            case .wait(let time): return wait(until: time)
            case .retry(let failures, let time):
                wait(until: time)
                guard state.value.retryTimer == nil else { return }
                state.value.retryTimer = reactor.schedule(after: Self.backoff.delay(afterFailures: failures), for: self)
                {
                    $0.restart()
                }
                return
            }
        }
    }

    private func wait(until time: Int64?) {
        state.value.timer?.cancel()
        state.value.timer = nil
        guard let time else { return }
        let milliseconds = max(0, time - clock.now())
        let wait = min(.milliseconds(milliseconds), Self.maximumWait)
        state.value.timer = reactor.schedule(after: wait, for: self) { $0.resume() }
    }

    private func resume() {
        state.value.sweep.resume(at: clock.now())
        advance()
    }

    private func restart() {
        state.value.retryTimer?.cancel()
        state.value.retryTimer = nil
        state.value.sweep.restart()
        advance()
    }

    private func read(after name: String?, _ limit: Int) {
        Task {
            let page: AlarmRowPage?
            let failure: StateStoreError?
            do throws(StateStoreError) {
                let read = try await rows.rows(after: name, limit: limit, at: clock.now())
                (page, failure) = (read, read.failure)
            } catch {
                (page, failure) = (nil, error)
            }
            if let failure {
                context.failedAlarms.logLine("the alarms cannot be read from the store; trying again: \(failure)")
            }
            reactor.execute {
                self.state.value.sweep.didRead(
                    page?.rows, last: page?.last, isLast: page?.isLast ?? false, isPartial: failure != nil,
                    at: self.clock.now())
                self.advance()
            }
        }
    }

    // MARK: Deliveries

    private func deliver(_ row: AlarmSweep.Row) {
        Task {
            let outcome: Result<Int64?, any Error>
            do {
                outcome = .success(try await deliverAlarms(of: row))
            } catch {
                outcome = .failure(error)
                // The next owner delivers the alarms of an actor that has moved.
                if isHere(row.actor) {
                    context.failedAlarms.logLine(
                        "the alarms of actor '\(row.actor)' cannot be delivered; trying again: \(error)")
                }
            }
            reactor.execute {
                switch outcome {
                case .success(let next):
                    self.state.value.sweep.didDeliver(row, isFailed: false)
                    if let next { self.state.value.sweep.didWrite(next) }
                case .failure: self.state.value.sweep.didDeliver(row, isFailed: true)
                }
                if self.isStopped.load(ordering: .acquiring) { self.resumeWaiting() } else { self.advance() }
            }
        }
    }

    /// Delivers the due alarms of an actor in the order of their times. Returns after their outcomes are written, with the time of the
    /// actor's next alarm: that of the row if the time of day was set back.
    private func deliverAlarms(of row: AlarmSweep.Row) async throws -> Int64? {
        let record = try await enterActor(ActorName(row.actor))
        defer { record.actorInstance.removeUser() }
        guard let persisted = record.persisted, let alarms = persisted.alarms, let home = record.home else {
            throw TrebuchetError(
                .internal, "\(record.type.name) has no 'func alarm(_ alarm: Alarm)', or its server no store")
        }
        let clock = clock
        for due in await home.reactor.perform({ alarms.due(at: clock.now(), row: row.time) }) {
            guard !isStopped.load(ordering: .acquiring), isHere(row.actor) else { break }
            do {
                try await TimeLimit.run(context.limits.calls.timeout, on: home.reactor) { [caller] in
                    try await Caller.$current.withValue(caller) { try await record.deliverAlarm(due) }
                }
            } catch {
                // The attempt does not count: the next owner delivers the alarm again.
                guard isHere(row.actor) else { throw error }
                let consequence = await home.reactor.perform {
                    home.counts.count(.alarmsFailed)
                    return alarms.fail(due)
                }
                report(error, of: due, row.actor, consequence)
                // After a timeout, the other alarms of the actor wait for the next sweep, so that they do not extend this delivery.
                if (error as? TrebuchetError)?.code == .timeout { break }
            }
        }
        if let error = await persisted.written() { throw error }
        return await home.reactor.perform { alarms.nextTime }
    }

    private func report(_ error: any Error, of due: DueAlarm, _ actor: String, _ consequence: AlarmTable.Consequence) {
        let alarm = "alarm '\(due.alarm.name)' of actor '\(actor)'"
        switch consequence {
        case .retry(let delay):
            context.failedAlarms.logLine(
                "\(alarm) failed at attempt \(due.alarm.attempt); the next one follows in \(delay): \(error)")
        case .dropped:
            let rest = due.alarm.interval == nil ? "it is removed" : "its next period follows"
            context.logAt(.error, "\(alarm) failed at all \(due.alarm.attempt) attempts; \(rest): \(error)")
        case .none: break
        }
    }

    /// Returns whether this server may deliver alarms of an actor now.
    private func isHere(_ actor: String) -> Bool { router?.owns(actor) ?? true }

    /// Returns the actor, which it activates if necessary, as one that is in use.
    private func enterActor(_ name: ActorName) async throws -> ActorRecord {
        for _ in 0..<Self.activationAttempts {
            guard !isStopped.load(ordering: .acquiring) else {
                throw TrebuchetError(.unavailable, "the server is shutting down")
            }
            let record = try await activeActor(name)
            if record.actorInstance.enter() { return record }
        }
        throw TrebuchetError(.unavailable, "the actor was deactivated at the same time")
    }

    private func activeActor(_ name: ActorName) async throws -> ActorRecord {
        let isClustered = context.directory.clusteredType(of: name) != nil
        guard router == nil || isClustered else { throw ActorDirectory.notExposed(name) }
        guard isHere(name.text) else { throw ActorMoved.error }
        if let record = context.directory.record(name) { return record }
        guard router != nil || !isClustered else {
            throw TrebuchetError(
                .internal,
                "these alarms are in the store of the node, and those of actors with placement: .cluster in the coordination store"
            )
        }
        let shard = shards[Int(UInt(bitPattern: name.hashValue) % UInt(shards.count))]
        do {
            // In one turn of the reactor: a release of the slot waits for this turn, and then for the activation.
            let begun: Result<Task<ActorRecord, any Error>?, any Error> = await shard.reactor.perform {
                Result { () throws -> Task<ActorRecord, any Error>? in
                    guard self.isHere(name.text) else { throw ActorMoved.error }
                    return try self.context.directory.activate(name, for: .server, on: shard.reactor)
                }
            }
            guard let activation = try begun.get() else { throw ActorDirectory.notExposed(name) }
            // An activation that does not end must not use the place of this delivery for ever.
            try await TimeLimit.run(context.limits.calls.timeout, on: shard.reactor) { _ = try await activation.value }
            let record = try await activation.value
            await shard.reactor.perform { shard.didActivate(record) }
            return record
        } catch {
            throw CallerRefusal.cause(of: error)
        }
    }
}

/// The time of day for alarms. A test may shift it, and the test clock of a reactor advances it.
final class AlarmClock: Sendable {
    private let shift = Atomic<Int64>(0)
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    /// Milliseconds since 1970.
    func now() -> Int64 {
        Int64((WallClock.now &+ loop.timeAhead) / 1_000_000) + shift.load(ordering: .relaxed)
    }

    func shift(by time: Duration) {
        shift.wrappingAdd(Int64(time / .milliseconds(1)), ordering: .relaxed)
    }
}
