internal import Networking
internal import Platform
internal import Synchronization
internal import TrebuchetActors
package import TrebuchetCluster

/// The server as a cluster node.
extension TrebuchetServer {
    /// The maximum time for calls to an actor to end during an orderly handoff.
    private static let handover = Duration.seconds(3)

    /// Creates the parts that only a cluster node has. Called before the server listens.
    static func join(_ membership: ClusterMembership, _ parts: ServerContext, _ shards: [ServerShard]) {
        let names = parts.idempotencyCache.names
        let nodes = ClusterRouter(membership, events: parts.events, log: parts.logAt) { [weak parts] line, frame in
            guard let parts, let first = shards.first else { return nil }
            if frame.payload == SharedStreamMessage.opening {
                guard let nodes = parts.nodes else { return nil }
                let shard = shards[Int(line.number % UInt64(shards.count))]
                return SharedStreamChannel(line, at: shard, nodes.pendingDeliveries[line.node])
            }
            guard let client = ForwardedClient(frame.payload) else { return nil }
            let name = names.carry(
                client.session, onReactor: Int(line.number % UInt64(shards.count)), isVerified: true)
            let shard = shards.first { $0.index == names.reactor(of: name.name) } ?? first
            guard let nodes = parts.nodes else { return nil }
            return ForwardedLink(line, client, name, at: shard, behind: nodes.pendingDeliveries[line.node])
        }
        nodes.shared.set(reactor: shards.first?.reactor, memory: parts.memory) { [weak parts] slot, node in
            guard parts?.nodes != nil else { return }
            for shard in shards { shard.reactor.execute { shard.forgetOwner(of: slot, node) } }
        }
        nodes.whenOwnerIsKnown { slot, owner, isHere in
            for shard in shards { shard.deliverNotice { shard.ownerDidChange(of: slot, to: owner, isHere: isHere) } }
        }
        parts.nodesOfServer.withLock { $0 = nodes }
    }

    /// Requests an orderly stop of a cluster node, like SIGTERM; returns false if the node is not reachable.
    package static func stop(_ node: ClusterNode, at engine: any ClusterEngine) async throws(ClusterEngineError) -> Bool
    {
        let sender = try ClusterNode(name: "operator")
        let message = NodeMessage(
            from: sender.description, number: 1, NodeMessage.Epochs(sender: 1, receiver: 0),
            [NodeFrame(.stop, channelID: 0)])
        return try await engine.sendMessage(message.bytes, to: node)
    }

    /// Returns when an operator requests the node's stop; never without a cluster.
    func stopRequested() async {
        guard let requests = context.nodes?.exchange.stopRequests else { return }
        for await isRequested in requests.stream where isRequested { return }
    }

    /// Returns the reason when the node has failed permanently; nil without a cluster.
    func nodeFailed() async -> ClusterEngineError? {
        guard let nodes = context.nodes else { return nil }
        for await hasFailed in nodes.hasFailed.stream where hasFailed { return nodes.failure }
        return nil
    }

    func startNode() async throws {
        guard let nodes = context.nodes else { return }
        for shard in shards {
            await shard.reactor.perform {
                // Only the placed writer: node-local actors have no other owner, so they stay whatever happens to their store.
                shard.clusteredWriter?.didRelinquish = { [weak self, unowned shard] name in
                    // Ends the activation here and not in the task: until the task runs, calls would run in an activation that
                    // persists nothing.
                    if let self, let record = directory.record(ActorName(name)),
                        record.persisted?.isRelinquished == true
                    {
                        _ = record.actorInstance.closeForCalls()
                        moveStreams(of: ActorName(name), from: shard)
                    }
                    Task { await self?.giveUp(name) }
                }
            }
        }
        // After a data loss the account keys belong to no account, so a node with accounts must not continue.
        let mayContinue = access.accountsProblem == nil
        try await nodes.start(on: ReactorGroup(shards.map(\.reactor)), mayContinue: mayContinue) {
            [weak self] slot, inOrder in
            await self?.release(slot, inOrder: inOrder)
        }
    }

    /// Deactivates an actor whose log accepts no more changes. The next call or subscription activates it from its persisted
    /// state, here or on another node.
    private func giveUp(_ name: String) async {
        // A write can be refused before the activation has registered its record.
        _ = await directory.activation(of: ActorName(name))?.result
        guard let record = directory.record(ActorName(name)), let persisted = record.persisted,
            await persisted.hasBeenRelinquished
        else { return }
        context.log(
            "actor '\(name)' is activated again: its log was written by another process, or its node no longer owns it")
        await release([record], inOrder: false)
    }

    /// Deactivates all actors of a slot that another node owns or is about to own. Their streams are resumed there.
    private func release(_ slot: ClusterSlot, inOrder: Bool) async {
        // Actors that another node owns must stop at once, even while others of the slot are still being activated.
        if !inOrder { await release(directory.clusteredActors(in: slot).records, inOrder: false) }
        // Calls admitted before the slot was released have started after this.
        for shard in shards { await shard.reactor.perform {} }
        let (_, making, deactivating) = directory.clusteredActors(in: slot)
        for task in making { _ = await task.result }
        if inOrder { for task in deactivating { await task.value } }
        await release(directory.clusteredActors(in: slot).records, inOrder: inOrder)
    }

    func release(_ records: [ActorRecord], inOrder: Bool) async {
        guard !records.isEmpty else { return }
        let names = Set(records.map { ActorName($0.name) })
        if !inOrder {
            for record in records {
                let home = record.home?.serverShard ?? shards[0]
                await home.reactor.perform {
                    _ = record.actorInstance.closeForCalls()
                    // In one turn: a write confirmed from now on is published by the next owner.
                    self.moveStreams(of: ActorName(record.name), from: home)
                    record.persisted?.abandon()
                }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for record in records { group.addTask { await self.release(record, inOrder: inOrder) } }
        }
        await moveStreams(of: names)
        // Keep the records alive: the streams of an actor end with its last reference.
        extendLifetime(records)
    }

    /// Moves the streams of an actor whose activation is about to end, before any response that its end causes: the calls that
    /// fail may be repeated and answered from the store at once. Must be called on the actor's reactor.
    private func moveStreams(of name: ActorName, from home: ServerShard) {
        for shard in shards where shard !== home { shard.reactor.execute { shard.moveStreams(of: [name]) } }
        home.moveStreams(of: [name])
    }

    private func moveStreams(of names: Set<ActorName>) async {
        for shard in shards { await shard.reactor.perform { shard.moveStreams(of: names) } }
    }

    private static func move(_ part: some ClusteredServiceActor) async { await part.whenLocal { $0.didMove() } }

    private func release(_ record: ActorRecord, inOrder: Bool) async {
        let reactor = (record.home?.serverShard ?? shards[0]).reactor
        for shard in shards { await shard.reactor.perform { shard.forget(record) } }
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
            directory.deactivateActor(record) { [context] in
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
