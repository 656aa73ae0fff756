internal import Networking
internal import Synchronization

extension TrebuchetServer {
    /// Lets an actor go that was made on demand and has nothing more to do, as soon as no call to it is under way. Calls and streams
    /// that come from then on, also those that are on their way from other reactors, find the next of its name. Returns when that is
    /// decided.
    ///
    /// - Parameters:
    ///   - isUnused: asked on the actor, until it is false or no call is under way.
    ///   - finish: runs on the actor before the next of its name may be made; told whether it goes.
    package func letGo<A: DistributedActor>(
        _ actor: A, named name: String, if isUnused: @escaping @Sendable (isolated A) -> Bool,
        _ finish: @escaping @Sendable (isolated A, Bool) -> Void
    ) async where A.ActorSystem == TrebuchetActorSystem {
        let (life, parts) = (actorSystem.life(of: actor.id), parts)
        for attempt in 1...Self.attemptsToLetGo {
            let isDone = await actor.whenLocal { actor in
                guard isUnused(actor), attempt < Self.attemptsToLetGo else {
                    finish(actor, false)
                    return true
                }
                // From here on nobody is let in; where it has no record yet, it gets none.
                guard life.close() else { return false }
                finish(actor, true)
                if let record = parts.directory.record(ActorName(name)), record.actor === actor {
                    record.home?.serverShard?.didLetGo(record)
                }
                return true
            }
            if isDone != false { return }
            await pause(behind: attempt)
        }
    }

    /// A call that goes on for longer looks at its end whether the actor is still needed.
    private static var attemptsToLetGo: Int { 1_000 }

    /// The call that has asked for an actor's end may just be ending. But its thread may also have no core for a while, and a stream
    /// that does not begin has nobody who looks at its end: so the later attempts wait, in all for over a minute.
    private func pause(behind attempt: Int) async {
        guard attempt > 32 else { return await Task.yield() }
        try? await Task.sleep(for: .milliseconds(min(attempt - 32, 100)))
    }

    /// Lets the actors that were made on demand do what they want to before they go, all at once: for as long as an actor has that
    /// nobody uses any more, which those have too that are just being let go. Once, however often the server is shut down.
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
                shard.idleWatch = IdleWatch()
            }
        }
        let (records, leaving) = parts.directory.onDemand
        await withTaskGroup(of: Void.self) { group in
            for record in records where record.hasDeactivation && !record.life.isGone {
                let loop = record.home?.reactor ?? shards[0].reactor
                group.addTask { [parts] in
                    do {
                        try await TimeLimit.run(ServerShard.deactivation, on: loop) { try await record.deactivate() }
                    } catch {
                        parts.log("the server ends, and the deactivate() of actor '\(record.name)' failed: \(error)")
                    }
                }
            }
            for task in leaving {
                group.addTask { [reactor = shards[0].reactor] in
                    try? await TimeLimit.run(ServerShard.deactivation, on: reactor) { await task.value }
                }
            }
        }
    }
}
