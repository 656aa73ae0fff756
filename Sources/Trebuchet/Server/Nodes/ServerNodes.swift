internal import Networking
internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// A server's part in a cluster: which slots it owns, who owns the others, and the lines to those.
final class ServerNodes: Sendable {
    let node: ClusterNode
    let member: ClusterMember
    let directory: SlotDirectory
    let exchange: NodeExchange
    /// What actors of the cluster persist.
    let store: EngineStore
    let shared: SharedStreams
    /// What others were not sent yet of shared streams of this node's actors.
    let arrears = FeedArrears.Book()
    let watch: SlotWatch
    /// Whether it owns nothing any more, for good.
    let hasFailed = StateRelay(false)
    private let lastFailure = Mutex<ClusterEngineError?>(nil)
    private let engine: any ClusterEngine
    private let afterDataLoss: DataLossPolicy
    private let log: @Sendable (ServerEvent.Level, String) -> Void
    private let running = Mutex<[Task<Void, Never>]>([])
    /// Where others reach it directly, and the links to those.
    private let address: NodeAddress?
    private let key = DirectSecrets.randomBytes(NodeAnnouncement.keyBytes)
    private let direct = Mutex<(entrance: DirectEntrance, links: DirectLinks)?>(nil)

    /// - Parameter open: makes the end of a line that another node opens.
    init(
        _ membership: ClusterMembership, events: ServerEvents,
        log: @escaping @Sendable (ServerEvent.Level, String) -> Void,
        open: @escaping @Sendable (RelayLine, RelayFrame) -> (any RelayEnd)?
    ) {
        self.log = log
        address = membership.address
        (node, member, watch, store) = (membership.node, membership.member, membership.watch, membership.store)
        (engine, afterDataLoss) = (membership.engine, membership.afterDataLoss)
        watch.tell(events)
        membership.store.report { log(.warning, "cluster: \($0)") }
        let directory = SlotDirectory(membership.engine, member: member)
        self.directory = directory
        watch.whenAssigned { directory.didAcquire($0) }
        exchange = NodeExchange(membership.engine, as: node, open: open)
        shared = SharedStreams(exchange)
    }

    /// What an owner before has sent of a slot ends before anything goes to the next one, so that no answer of that comes ahead of what its
    /// streams show. Before this node takes part.
    ///
    /// - Parameter tell: has all reactors hear of an owner.
    func whenOwnerIsKnown(_ tell: @escaping @Sendable (ClusterSlot, ClusterNode, _ isHere: Bool) -> Void) {
        let (shared, node) = (shared, node)
        let tell: @Sendable (ClusterSlot, ClusterNode) -> Void = { slot, owner in
            shared.leave(slot, to: owner)
            tell(slot, owner, owner == node)
        }
        directory.beforeAnswers(tell)
        watch.beforeAssigned { [directory] slot in
            // What is asked now waits until it is known here.
            directory.forget(slot)
            tell(slot, node)
        }
    }

    /// Whether actors of that name may live here.
    func owns(_ name: String) -> Bool { member.keeps(ClusterSlot(of: name)) }

    /// Takes part from now on.
    ///
    /// - Parameters:
    ///   - mayContinue: whether `DataLossPolicy.continue` can be followed.
    ///   - release: lets go of what lives in a slot, in order or at once; returns when nothing of it does anything any more.
    func start(
        on reactors: ReactorGroup, mayContinue: Bool,
        release: @escaping @Sendable (ClusterSlot, _ inOrder: Bool) async -> Void
    ) async throws {
        // A server that could not listen may be started again.
        guard running.withLock({ $0.isEmpty }) else { return }
        watch.release(by: release)
        if let address {
            let entrance = try DirectEntrance(at: address, self, on: reactors)
            let links = DirectLinks(self, on: reactors) { [log] in log(.notice, $0) }
            direct.withLock { $0 = (entrance, links) }
            let reached = NodeAddress(host: address.host, port: entrance.port)
            member.tell(NodeAnnouncement(reached, key: key).bytes)
            exchange.use(links)
        }
        do {
            try await exchange.start()
        } catch {
            // Its port is free before it is started again.
            if let entrance = closeLinks() { await entrance.close() }
            throw error
        }
        running.withLock { running in
            running.append(Task { await self.run(mayContinue) })
            running.append(Task { await self.lookWhoLives() })
            running.append(Task { await self.watchConnections() })
        }
    }

    /// After each new connection to the engine, finds out what it has lost.
    private func watchConnections() async {
        var checked = engine.connectionCount
        /// When slots that had no owner meanwhile have one.
        var settled: UInt64?
        while !Task.isCancelled {
            try? await Task.sleep(for: member.settings.roundInterval)
            let count = engine.connectionCount
            let now = MonotonicClock.nowWithSleep
            if count != checked {
                guard await store.checkEnds() else { continue }
                checked = count
                settled = now &+ (member.settings.leaseDuration * 2).nanoseconds
            } else if let moment = settled, now >= moment, await store.checkEnds(isSettled: true) {
                settled = nil
            }
            store.endReports()
        }
    }

    /// - Parameter mayContinue: whether `DataLossPolicy.continue` can be followed.
    private func run(_ mayContinue: Bool) async {
        while true {
            do throws(ClusterEngineError) {
                return try await member.run()
            } catch {
                log(.error, "cluster: node \(node.name) owns nothing any more: \(error.message)")
                guard mayContinue, afterDataLoss == .continue, error.code == .dataLoss, !Task.isCancelled else {
                    lastFailure.withLock { $0 = error }
                    hasFailed.update(true)
                    return
                }
            }
            log(.error, "cluster: node \(node.name) begins a new generation of what the engine has now")
            store.forgetAll()
            member.beginAgain()
            try? await Task.sleep(for: member.settings.roundInterval)
        }
    }

    /// Why it owns nothing any more; nil as long as it can.
    var failure: ClusterEngineError? { lastFailure.withLock { $0 } }

    /// Why it cannot serve now; nil when it can.
    func problem() async -> String? {
        if let failure { return failure.message }
        if let problem = member.problem { return problem }
        do throws(StateStoreError) {
            try await (engine as? any PlacedEngine)?.checkPlace()
            return nil
        } catch {
            return "the engine: \(error)"
        }
    }

    /// Lines to nodes that have gone break.
    private func lookWhoLives() async {
        var nodeLog = NodeLog(node)
        while !Task.isCancelled {
            try? await Task.sleep(for: member.settings.roundInterval)
            let living = member.liveNodes
            for line in nodeLog.lines(
                living: living, slots: member.slotCount, trouble: member.trouble, problem: member.problem,
                at: MonotonicClock.nowWithSleep)
            { log(line.level, line.text) }
            // A node that cannot see who lives does not see itself either.
            guard living.contains(node) else { continue }
            await exchange.lose(allBut: living)
            // One that is being stopped lives no more, and is there as long as it has something to say.
            direct.withLock { $0?.links }?.keep(living + exchange.nodes)
        }
    }

    /// Gives its slots away; goes on carrying what its clients call elsewhere.
    ///
    /// - Parameter limit: what it still owns then, as the engine is away for one, others own when its leases are over.
    func drain(within limit: Duration) async {
        exchange.leave()
        let member = member
        let isDone = await TrebuchetServer.answer(within: limit) { answer in
            Task {
                await member.drain()
                answer(true)
            }
        }
        guard isDone == nil else { return }
        log(
            .warning,
            "cluster: node \(node.name) could not give all away within \(limit), and stops: "
                + (member.trouble?.message ?? "calls of its actors have not ended")
                + "; other nodes take over when its leases end")
    }

    /// Others hear nothing of it any more, nor it of them.
    func mute() { exchange.mute() }

    /// As if it had died: gives nothing back, and is not heard of any more.
    func end() {
        for task in running.withLock({ $0 }) { task.cancel() }
        exchange.close()
        if let entrance = closeLinks() { Task { await entrance.close() } }
    }

    /// For tests.
    var openLinkCount: Int { direct.withLock { $0?.links }?.openCount ?? 0 }

    /// For tests: as if the network had cut them.
    func cutLinks() { direct.withLock { $0?.links }?.cut() }

    /// - Returns: what still is to be closed.
    private func closeLinks() -> DirectEntrance? {
        let direct = direct.withLock { direct in
            defer { direct = nil }
            return direct
        }
        direct?.links.close()
        return direct?.entrance
    }
}

extension ServerNodes: DirectPeers {
    func announcement(of node: ClusterNode) -> NodeAnnouncement? {
        member.info(of: node).flatMap { NodeAnnouncement($0) }
    }
    func handled(from node: ClusterNode) -> UInt64 { exchange.handled(from: node) }
    func receive(_ message: [UInt8], from node: ClusterNode) -> Bool { exchange.receive(message, from: node) }
    func mayHaveLost(_ node: ClusterNode) { exchange.lose(node) }
}
