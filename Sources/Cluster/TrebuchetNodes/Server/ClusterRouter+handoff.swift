internal import Distributed
internal import Networking
internal import Platform
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// The handoff of actors to other nodes.
extension ClusterRouter {
    /// The maximum time for calls to an actor to end during an orderly handoff.
    private static let handover = Duration.seconds(3)

    func start(_ server: TrebuchetServer, mayContinue: Bool) async throws {
        for shard in server.shards {
            await shard.reactor.perform {
                // Only the placed writer: node-local actors have no other owner, so they stay whatever happens to their store.
                shard.clusteredWriter?.didRelinquish = { [weak self, weak server, unowned shard] name in
                    guard let self, let server else { return }
                    // Ends the activation here and not in the task: until the task runs, calls would run in an activation that
                    // persists nothing.
                    if let record = server.directory.record(ActorName(name)), record.persisted?.isRelinquished == true {
                        _ = record.actorInstance.closeForCalls()
                        self.moveStreams(of: ActorName(name), from: shard, of: server)
                    }
                    Task { await self.giveUp(name, of: server) }
                }
            }
        }
        try await start(on: ReactorGroup(server.shards.map(\.reactor)), mayContinue: mayContinue) {
            [weak self, weak server] slot, inOrder in
            guard let server else { return }
            await self?.release(slot, of: server, inOrder: inOrder)
        }
    }

    func release(_ records: [ActorRecord], of server: TrebuchetServer) async {
        await release(records, of: server, inOrder: false)
    }

    /// Deactivates an actor whose log accepts no more changes. The next call or subscription activates it from its persisted
    /// state, here or on another node.
    private func giveUp(_ name: String, of server: TrebuchetServer) async {
        // A write can be refused before the activation has registered its record.
        _ = await server.directory.activation(of: ActorName(name))?.result
        guard let record = server.directory.record(ActorName(name)), let persisted = record.persisted,
            await persisted.hasBeenRelinquished
        else { return }
        server.context.log(
            "actor '\(name)' is activated again: its log was written by another process, or its node no longer owns it")
        await release([record], of: server, inOrder: false)
    }

    /// Deactivates all actors of a slot that another node owns or is about to own. Their streams are resumed there.
    private func release(_ slot: ClusterSlot, of server: TrebuchetServer, inOrder: Bool) async {
        let directory = server.directory
        // Actors that another node owns must stop at once, even while others of the slot are still being activated.
        if !inOrder {
            await release(directory.clusteredActors(in: slot.number).records, of: server, inOrder: false)
        }
        // Calls admitted before the slot was released have started after this.
        for shard in server.shards { await shard.reactor.perform {} }
        let (_, making, deactivating) = directory.clusteredActors(in: slot.number)
        for task in making { _ = await task.result }
        if inOrder { for task in deactivating { await task.value } }
        await release(directory.clusteredActors(in: slot.number).records, of: server, inOrder: inOrder)
    }

    private func release(_ records: [ActorRecord], of server: TrebuchetServer, inOrder: Bool) async {
        guard !records.isEmpty else { return }
        let names = Set(records.map { ActorName($0.name) })
        if !inOrder {
            for record in records {
                let home = record.home?.serverShard ?? server.shards[0]
                await home.reactor.perform {
                    _ = record.actorInstance.closeForCalls()
                    // In one turn: a write confirmed from now on is published by the next owner.
                    self.moveStreams(of: ActorName(record.name), from: home, of: server)
                    record.persisted?.abandon()
                }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for record in records { group.addTask { await self.release(record, of: server, inOrder: inOrder) } }
        }
        for shard in server.shards { await shard.reactor.perform { shard.moveStreams(of: names) } }
        // Keep the records alive: the streams of an actor end with its last reference.
        extendLifetime(records)
    }

    /// Moves the streams of an actor whose activation is about to end, before any response that its end causes: the calls that
    /// fail may be repeated and answered from the store at once. Must be called on the actor's reactor.
    private func moveStreams(of name: ActorName, from home: ServerShard, of server: TrebuchetServer) {
        for shard in server.shards where shard !== home { shard.reactor.execute { shard.moveStreams(of: [name]) } }
        home.moveStreams(of: [name])
    }

    private static func move(_ part: some ClusteredServiceActor) async { await part.whenLocal { $0.didMove() } }

    private func release(_ record: ActorRecord, of server: TrebuchetServer, inOrder: Bool) async {
        let reactor = (record.home?.serverShard ?? server.shards[0]).reactor
        for shard in server.shards { await shard.reactor.perform { shard.forget(record) } }
        if inOrder {
            let deadline = MonotonicClock.now &+ Self.handover.nanoseconds
            while await !reactor.perform({ record.actorInstance.isDeactivated || record.actorInstance.close() }),
                MonotonicClock.now < deadline
            {
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        _ = await reactor.perform { record.actorInstance.closeForCalls() }
        await withCheckedContinuation { done in
            server.directory.deactivateActor(record) { [context = server.context] in
                if inOrder {
                    do {
                        try await TimeLimit.run(ServerShard.deactivation, on: reactor) { try await record.deactivate() }
                    } catch {
                        context.log(
                            "actor '\(record.name)' moves to another node, and its deactivate() failed: \(error)")
                    }
                } else {
                    record.persisted?.abandon()
                }
                if let persisted = record.persisted, let actor = record.actor {
                    if let error = await persisted.retire() { context.log(persisted.loss(error)) }
                    (actor.id as? TrebuchetActorID).map { context.locals.setPersistedStates(nil, of: $0) }
                }
                if let part = record.actor as? any ClusteredServiceActor { await Self.move(part) }
                record.releaseReservation()
                done.resume()
            }
        }
    }
}
