internal import Networking
internal import Synchronization

extension TrebuchetServer {
    /// Lets an actor go that was made on demand and has nothing more to do. Calls and streams that come from now on, also those that
    /// are on their way from other reactors, find the next of its name; those that run go on. On the actor's reactor, once.
    package func letGo(_ actor: some DistributedActor, named name: String) {
        guard let record = parts.directory.record(ActorName(name)), record.actor === actor,
            let home = record.home?.server
        else { return }
        record.life.end()
        home.didLetGo(record)
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
                let reactor = record.home?.reactor ?? shards[0].reactor
                group.addTask { [parts] in
                    do {
                        try await TimeLimit.run(ServerShard.deactivation, on: reactor) { try await record.deactivate() }
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
