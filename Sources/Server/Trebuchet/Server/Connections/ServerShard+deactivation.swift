internal import Networking
internal import Synchronization

/// Deactivation of idle actors.
extension ServerShard {
    /// The number of actors that are checked in one turn.
    private static let batch = 1_024
    /// The time limit for an actor's `deactivate`.
    package static let deactivation = Duration.seconds(5)

    /// Watches an actor for idleness from now on, on the responsible reactor.
    func watchIdle(_ record: ActorRecord) {
        guard let policy = record.idle else { return }
        let shard = record.home.flatMap { sibling(on: $0) } ?? siblings.first ?? self
        shard.reactor.run {
            guard record.actorInstance.isUnwatched.load(ordering: .relaxed) else { return }
            record.actorInstance.isUnwatched.store(false, ordering: .relaxed)
            shard.idleWatch.trackActor(record, policy, at: shard.context.idleClock.now(on: shard.reactor))
            shard.scheduleIdleWatch(policy)
        }
    }

    private func scheduleIdleWatch(_ policy: IdlePolicy) {
        let pause = min(max(policy.time / 8, .milliseconds(10)), .seconds(5))
        idlePause = min(idlePause ?? pause, pause)
        guard !isWatchingIdle, let pause = idlePause else { return }
        isWatchingIdle = true
        reactor.schedule(after: pause) { [weak self] in
            guard let self else { return }
            self.isWatchingIdle = false
            self.checkIdleActors()
            if self.idleWatch.count > 0 { self.scheduleIdleWatch(policy) }
        }
    }

    /// Checks each of them once, some in each turn.
    func checkIdleActors() { checkIdleActors(idleWatch.count) }

    private func checkIdleActors(_ rest: Int) {
        guard rest > 0 else { return }
        let now = context.idleClock.now(on: reactor)
        for record in idleWatch.removeIdle(of: min(rest, Self.batch), at: now) { deactivateActor(record) }
        guard rest > Self.batch else { return }
        reactor.execute { [weak self] in self?.checkIdleActors(rest - Self.batch) }
    }

    private func deactivateActor(_ record: ActorRecord) {
        guard let policy = record.idle else { return }
        record.checkIdle(discarding: policy.discards) { [weak self] isIdle in
            guard let self else { return }
            self.reactor.run {
                guard !self.isEnding else { return }
                if !isIdle { self.logRetention(of: record) }
                guard isIdle, record.actorInstance.close() else {
                    return self.idleWatch.trackActor(record, policy, at: self.context.idleClock.now(on: self.reactor))
                }
                self.didDeactivate(record, isUnused: true)
            }
        }
    }

    /// Logs once for each type why its actors are not deactivated.
    private func logRetention(of record: ActorRecord) {
        let (log, type, name) = (context.log, record.type, record.name)
        guard let policy = record.idle, !policy.discards else { return }
        record.checkIdle(discarding: true) { mayDeactivate in
            guard mayDeactivate, type.isFirstRetained else { return }
            log(
                "actor '\(name)' (\(type.name)) was idle for \(policy.time) and cannot be deactivated: it has changed state "
                    + "that is not persisted; persist the state, or expose the type with discarding: true")
        }
    }

    /// Completes the deactivation of an actor whose life has ended.
    ///
    /// - Parameter isUnused: True if it has no observer, and no subscriber may resume.
    func didDeactivate(_ record: ActorRecord, isUnused: Bool = false) {
        forget(record)
        counts.count(.actorsDeactivated)
        if events.isEnabled(for: .actors) { events.emit(.actorDeactivated(name: record.name, type: record.type.name)) }
        let (siblings, parts, reactor) = (siblings, context, reactor)
        parts.directory.deactivateActor(record) {
            for shard in siblings { await shard.reactor.perform { shard.forget(record) } }
            do {
                try await TimeLimit.run(Self.deactivation, on: reactor) { try await record.deactivate() }
            } catch {
                parts.log("actor '\(record.name)' was deactivated, but its deactivate() failed: \(error)")
            }
            if let persisted = record.persisted, let actor = record.actor {
                if let error = await persisted.retire(isUnused: isUnused) { parts.log(persisted.loss(error)) }
                await persisted.removeIfOver()
                (actor.id as? TrebuchetActorID).map { parts.locals.setPersistedStates(nil, of: $0) }
            }
            record.releaseReservation()
        }
    }
}
