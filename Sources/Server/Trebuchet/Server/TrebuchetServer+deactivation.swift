internal import Networking
internal import Synchronization

extension TrebuchetServer {
    /// Deactivates an activated actor that is unused, as soon as it has no in-flight call. Later calls and streams, including those
    /// in transit from other reactors, reach the next actor of that name. Returns when this is decided.
    ///
    /// - Parameters:
    ///   - isUnused: Evaluated on the actor until it is false or no call is in flight.
    ///   - finish: Runs on the actor before the next one of its name may be activated; its argument is true if the actor is
    ///     deactivated.
    package func deactivateActor<A: DistributedActor>(
        _ actor: A, named name: String, if isUnused: @escaping @Sendable (isolated A) -> Bool,
        _ finish: @escaping @Sendable (isolated A, Bool) -> Void
    ) async where A.ActorSystem == TrebuchetActorSystem {
        let (instance, parts) = (actorSystem.instance(of: actor.id), context)
        for attempt in 1...Self.deactivationAttempts {
            let isDone = await actor.whenLocal { actor in
                guard isUnused(actor), attempt < Self.deactivationAttempts else {
                    finish(actor, false)
                    return true
                }
                // From here on no call is admitted; an actor without a record gets none.
                guard instance.close() else { return false }
                finish(actor, true)
                if let record = parts.directory.record(ActorName(name)), record.actor === actor {
                    record.home?.serverShard?.didDeactivate(record)
                }
                return true
            }
            if isDone != false { return }
            await pause(behind: attempt)
        }
    }

    /// A call that runs longer checks at its end whether the actor is still needed.
    private static var deactivationAttempts: Int { 1_000 }

    /// The call that requested the deactivation may be about to end, but its thread may not be scheduled. A stream that does
    /// not start has no such check at its end. Later attempts therefore wait, for more than a minute in total.
    private func pause(behind attempt: Int) async {
        guard attempt > 32 else { return await Task.yield() }
        try? await Task.sleep(for: .milliseconds(min(attempt - 32, 100)))
    }

    /// Runs `deactivate()` of all activated actors concurrently, each with the time limit of an idle actor, and waits for
    /// deactivations that have started. Runs once, however often the server is shut down.
    func deactivateActors() async {
        let deactivation = deactivation.withLock { deactivation in
            let running = deactivation ?? Task { await self.deactivateNow() }
            deactivation = running
            return running
        }
        await deactivation.value
    }

    private func deactivateNow() async {
        for shard in shards {
            await shard.reactor.perform {
                shard.isEnding = true
                shard.idleWatch = IdleActorTracker()
            }
        }
        let (records, deactivating) = context.directory.onDemand
        await withTaskGroup(of: Void.self) { group in
            for record in records where record.hasDeactivation && !record.actorInstance.isDeactivated {
                let loop = record.home?.reactor ?? shards[0].reactor
                group.addTask { [context] in
                    do {
                        try await TimeLimit.run(ServerShard.deactivation, on: loop) { try await record.deactivate() }
                    } catch {
                        context.log(
                            "the server is shutting down, and the deactivate() of actor '\(record.name)' failed: \(error)"
                        )
                    }
                }
            }
            for task in deactivating {
                group.addTask { [reactor = shards[0].reactor] in
                    try? await TimeLimit.run(ServerShard.deactivation, on: reactor) { await task.value }
                }
            }
        }
    }
}
