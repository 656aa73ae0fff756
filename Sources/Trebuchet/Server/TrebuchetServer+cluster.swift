internal import Networking
internal import Platform
internal import Synchronization
internal import TrebuchetActors
package import TrebuchetCluster

/// A server that is one of several nodes.
extension TrebuchetServer {
    /// How long calls of actors that go to another node in order may take to end.
    private static let handover = Duration.seconds(3)

    /// Makes the parts that only a node has. Before it listens.
    static func join(_ membership: ClusterMembership, _ parts: ServerParts, _ shards: [ServerShard]) {
        let names = parts.answers.names
        let nodes = ServerNodes(membership, events: parts.events, log: parts.logAt) { [weak parts] line, frame in
            guard let parts, let first = shards.first else { return nil }
            if frame.payload == SharedMessage.opening {
                guard let nodes = parts.nodes else { return nil }
                let shard = shards[Int(line.number % UInt64(shards.count))]
                return FeedLine(line, at: shard, nodes.arrears[line.node])
            }
            guard let client = RelayedClient(frame.payload) else { return nil }
            let name = names.carry(client.session, onReactor: Int(line.number % UInt64(shards.count)))
            let shard = shards.first { $0.index == names.reactor(of: name.name) } ?? first
            guard let nodes = parts.nodes else { return nil }
            return RelayedLink(line, client, name, at: shard, behind: nodes.arrears[line.node])
        }
        nodes.shared.set(reactor: shards.first?.reactor, memory: parts.memory) { [weak parts] slot, node in
            guard parts?.nodes != nil else { return }
            for shard in shards { shard.reactor.execute { shard.forgetOwner(of: slot, node) } }
        }
        nodes.whenOwnerIsKnown { slot, owner, isHere in
            for shard in shards { shard.willHear { shard.ownerDidChange(of: slot, to: owner, isHere: isHere) } }
        }
        parts.nodesOfServer.withLock { $0 = nodes }
    }

    /// Asks a node of a cluster to stop in order, as SIGTERM would; false when it is not there.
    package static func stop(_ node: ClusterNode, at engine: any ClusterEngine) async throws(ClusterEngineError) -> Bool
    {
        let sender = try ClusterNode(name: "operator")
        let message = RelayMessage(
            from: sender.description, number: 1, RelayMessage.Epochs(sender: 1, receiver: 0),
            [RelayFrame(.stop, line: 0)])
        return try await engine.send(message.bytes, to: node)
    }

    /// Returns when an operator has asked for the node's end; never at a server that is none.
    func stopRequested() async {
        guard let requests = parts.nodes?.exchange.stopRequests else { return }
        for await isRequested in requests.stream where isRequested { return }
    }

    /// Returns when the node has failed for good, with the reason; nil at a server that is none.
    func nodeFailed() async -> ClusterEngineError? {
        guard let nodes = parts.nodes else { return nil }
        for await hasFailed in nodes.hasFailed.stream where hasFailed { return nodes.failure }
        return nil
    }

    func startNode() async throws {
        guard let nodes = parts.nodes else { return }
        for shard in shards {
            await shard.reactor.perform {
                // Of its own actors nobody else has any: those it keeps whatever becomes of their store.
                shard.placedWriter?.didGiveUp = { [weak self] name in
                    // Here, and not in the task: until then calls would run in an activation that keeps nothing.
                    if let record = self?.directory.record(ActorName(name)), record.persisted?.isGivenUp == true {
                        _ = record.life.end()
                    }
                    Task { await self?.giveUp(name) }
                }
            }
        }
        // The keys of accounts that were lost are those of no account any more.
        let mayContinue = access.accountsProblem == nil
        try await nodes.start(on: ReactorGroup(shards.map(\.reactor)), mayContinue: mayContinue) {
            [weak self] slot, inOrder in
            await self?.release(slot, inOrder: inOrder)
        }
    }

    /// Lets an actor go whose changes its log takes no more. Who calls or observes it next has it made anew, here or elsewhere, of what is kept.
    private func giveUp(_ name: String) async {
        guard let record = directory.record(ActorName(name)), let persisted = record.persisted,
            await persisted.hasBeenGivenUp
        else { return }
        parts.log(
            "actor '\(name)' is made anew: its log was written by somebody else, or its node does not own it any more")
        await release([record], inOrder: false)
    }

    /// Lets all actors of a slot go, which is another node's from then on, or is already. Their streams go on there.
    private func release(_ slot: ClusterSlot, inOrder: Bool) async {
        // What is another node's already neither runs nor shows anything while others of the slot are still being made.
        if !inOrder { await release(directory.placed(in: slot).records, inOrder: false) }
        // What was let in before the slot was being given away has begun by then.
        for shard in shards { await shard.reactor.perform {} }
        let (_, making, leaving) = directory.placed(in: slot)
        for task in making { _ = await task.result }
        if inOrder { for task in leaving { await task.value } }
        await release(directory.placed(in: slot).records, inOrder: inOrder)
    }

    func release(_ records: [ActorRecord], inOrder: Bool) async {
        guard !records.isEmpty else { return }
        let names = Set(records.map { ActorName($0.name) })
        if !inOrder {
            for record in records {
                await (record.home?.serverShard ?? shards[0]).reactor.perform {
                    _ = record.life.end()
                    // Before its streams go: an acknowledgement that comes from now on is shown by the next owner.
                    record.persisted?.abandon()
                }
            }
            await moveStreams(of: names)
        }
        await withTaskGroup(of: Void.self) { group in
            for record in records { group.addTask { await self.release(record, inOrder: inOrder) } }
        }
        await moveStreams(of: names)
        // With the last reference to an actor its streams end.
        extendLifetime(records)
    }

    private func moveStreams(of names: Set<ActorName>) async {
        for shard in shards { await shard.reactor.perform { shard.moveStreams(of: names) } }
    }

    private static func move(_ part: some PlacedPart) async { await part.whenLocal { $0.didMove() } }

    private func release(_ record: ActorRecord, inOrder: Bool) async {
        let reactor = (record.home?.serverShard ?? shards[0]).reactor
        for shard in shards { await shard.reactor.perform { shard.forget(record) } }
        if inOrder {
            let deadline = MonotonicClock.now &+ Self.handover.nanoseconds
            while await !reactor.perform({ record.life.isGone || record.life.close() }), MonotonicClock.now < deadline {
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        _ = await reactor.perform { record.life.end() }
        await withCheckedContinuation { done in
            directory.letGo(record) { [parts] in
                if inOrder {
                    do {
                        try await TimeLimit.run(ServerShard.deactivation, on: reactor) { try await record.deactivate() }
                    } catch {
                        parts.log("actor '\(record.name)' goes to another node, and its deactivate() failed: \(error)")
                    }
                } else {
                    record.persisted?.abandon()
                }
                if let persisted = record.persisted, let actor = record.actor {
                    if let error = await persisted.retire() { parts.log(persisted.loss(error)) }
                    (actor.id as? TrebuchetActorID).map { parts.locals.setPersistedStates(nil, of: $0) }
                }
                if let part = record.actor as? any PlacedPart { await Self.move(part) }
                record.giveBackStake()
                done.resume()
            }
        }
    }
}
