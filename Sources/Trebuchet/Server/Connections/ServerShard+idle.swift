internal import Networking

/// Letting go of actors that nobody uses.
extension ServerShard {
    /// Actors that are looked at in one go.
    private static let batch = 1_024
    /// How long an actor may take for its `deactivate`.
    static let deactivation = Duration.seconds(5)

    /// Looks after an actor from now on, when that is this reactor's part.
    func watchIdle(_ record: ActorRecord) {
        guard let policy = record.idle else { return }
        let keeper = record.home.flatMap { sibling(on: $0) } ?? siblings.first ?? self
        keeper.reactor.run {
            guard record.life.isUnwatched else { return }
            record.life.isUnwatched = false
            keeper.idleWatch.add(record, policy, at: keeper.parts.idleClock.now(on: keeper.reactor))
            keeper.scheduleIdleWatch(policy)
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
            self.lookForIdle()
            if self.idleWatch.count > 0 { self.scheduleIdleWatch(policy) }
        }
    }

    /// Looks at each of them once, some in each turn.
    func lookForIdle() { lookForIdle(idleWatch.count) }

    private func lookForIdle(_ rest: Int) {
        guard rest > 0 else { return }
        let now = parts.idleClock.now(on: reactor)
        for record in idleWatch.rested(of: min(rest, Self.batch), at: now) { letGo(record) }
        guard rest > Self.batch else { return }
        reactor.execute { [weak self] in self?.lookForIdle(rest - Self.batch) }
    }

    private func letGo(_ record: ActorRecord) {
        guard let policy = record.idle else { return }
        record.looksIdle(discarding: policy.discards) { [weak self] isIdle in
            guard let self else { return }
            self.reactor.run {
                guard !self.isEnding else { return }
                if !isIdle { self.noteStaying(record) }
                guard isIdle, record.life.close() else {
                    return self.idleWatch.add(record, policy, at: self.parts.idleClock.now(on: self.reactor))
                }
                self.didLetGo(record, isUnused: true)
            }
        }
    }

    /// Says once for each type why its actors stay.
    private func noteStaying(_ record: ActorRecord) {
        let (log, type, name) = (parts.log, record.type, record.name)
        guard let policy = record.idle, !policy.discards else { return }
        record.looksIdle(discarding: true) { wouldGo in
            guard wouldGo, type.isFirstToStay else { return }
            log(
                "actor '\(name)' (\(type.name)) was idle for \(policy.time) and stays, as others of its type will: a state of it "
                    + "has changed that no store keeps; persist it, or expose the type with discarding: true")
        }
    }

    /// Its life has ended.
    ///
    /// - Parameter isUnused: whether nobody observes it, or may come back to it.
    func didLetGo(_ record: ActorRecord, isUnused: Bool = false) {
        forget(record)
        counts.count(.actorsLetGo)
        if events.wants(.actors) { events.tell(.actorLetGo(name: record.name, type: record.type.name)) }
        let (siblings, parts, reactor) = (siblings, parts, reactor)
        parts.directory.letGo(record) {
            for shard in siblings { await shard.reactor.perform { shard.forget(record) } }
            do {
                try await TimeLimit.run(Self.deactivation, on: reactor) { try await record.deactivate() }
            } catch {
                parts.log("actor '\(record.name)' was let go, though its deactivate() failed: \(error)")
            }
            if let persisted = record.persisted, let actor = record.actor {
                if let error = await persisted.retire(isUnused: isUnused) { parts.log(persisted.loss(error)) }
                await persisted.removeIfOver()
                (actor.id as? TrebuchetActorID).map { parts.locals.setPersistedStates(nil, of: $0) }
            }
            record.giveBackStake()
        }
    }
}
