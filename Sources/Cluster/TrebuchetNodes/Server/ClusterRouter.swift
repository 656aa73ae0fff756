internal import Networking
internal import Platform
internal import Relays
internal import Synchronization
internal import Transports
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// The cluster part of a server: its slots, the owners of other slots, and the channels to them.
final class ClusterRouter: RemoteRouter {
    let node: ClusterNode
    let member: ClusterMember
    let directory: SlotDirectory
    let exchange: NodeTransport
    /// The persisted state of cluster actors.
    let engineStore: EngineStore
    private let parts: Parts
    let shared: SharedStreamSubscriptions
    /// Pending deliveries of shared streams of this node's actors, by node.
    let pendingDeliveries = PendingDeliveries.Registry()
    let watch: SlotReleaseHandler
    /// Indicates whether it has permanently lost all slots.
    let hasFailed = StateRelay(false)
    private let lastFailure = Mutex<ClusterEngineError?>(nil)
    private let engine: any ClusterEngine
    private let afterDataLoss: DataLossPolicy
    private let startTimeout: Duration
    private let log: @Sendable (ServerEvent.Level, String) -> Void
    private let running = Mutex<[Task<Void, Never>]>([])
    /// The address for direct links, and the links to other nodes.
    private let address: NodeAddress?
    private let certificates: NodeCertificateFiles?
    private let direct = Mutex<(listener: NodeLinkListener, links: NodeLinks, identity: NodeLinkIdentity)?>(nil)

    init(
        _ membership: ClusterMembership, events: EventBus,
        log: @escaping @Sendable (ServerEvent.Level, String) -> Void
    ) {
        self.log = log
        let parts = Parts()
        self.parts = parts
        (address, certificates) = (membership.address, membership.certificates)
        (node, member, watch) = (membership.node, membership.member, membership.watch)
        engineStore = membership.store
        (engine, afterDataLoss) = (membership.engine, membership.dataLossPolicy)
        startTimeout = membership.startTimeout
        watch.setEventBus(events)
        membership.store.report { log(.warning, "cluster: \($0)") }
        let directory = SlotDirectory(membership.engine, member: member)
        self.directory = directory
        let rows = membership.store.alarmRows
        watch.whenAssigned { slot in
            directory.didAcquire(slot)
            rows.didAcquire(slot)
        }
        exchange = NodeTransport(membership.engine, as: node) { parts.open($0, $1) }
        shared = SharedStreamSubscriptions(exchange)
    }

    /// The parts of the node on the reactors of the server, which exist from the creation of the server to its end.
    private final class Parts: Sendable {
        private let all = Mutex<[NodeShard]>([])

        var shards: [NodeShard] { all.withLock { $0 } }

        func set(_ shards: [NodeShard]) { all.withLock { $0 = shards } }

        /// Creates the local end of a channel that another node opens; nil if it is refused.
        func open(_ channel: NodeChannel, _ frame: NodeFrame) -> (any NodeChannelHandler)? {
            let shards = shards
            guard let first = shards.first else { return nil }
            let index = Int(channel.number % UInt64(shards.count))
            let pendingDeliveries = first.nodes.pendingDeliveries[channel.node]
            if frame.payload == SharedStreamMessage.opening {
                return SharedStreamChannel(channel, at: shards[index], pendingDeliveries)
            }
            guard let client = ForwardedClient(frame.payload) else { return nil }
            let names = first.shard.context.sessions
            let alias = names.carry(client.session, onReactor: index, isVerified: true)
            let shard = shards.first { $0.shard.index == names.reactor(of: alias.name) } ?? first
            return ForwardedLink(channel, client, alias, at: shard.shard, behind: pendingDeliveries)
        }
    }

    func makeShardRouters(for shards: [ServerShard]) -> [any ShardRouter] {
        let made = shards.map { NodeShard($0, of: self) }
        parts.set(made)
        shared.set(reactor: shards.first?.reactor, memory: shards.first?.context.memory) { [parts] slot, node in
            for shard in parts.shards { shard.shard.reactor.execute { shard.forgetOwner(of: slot, node) } }
        }
        // Ends the shared streams of a slot's previous owner before any message goes to the next owner. No response of the next
        // owner can then arrive ahead of the updates that its call causes.
        let ownerIsKnown: @Sendable (ClusterSlot, ClusterNode) -> Void = { [shared, node, parts] slot, owner in
            shared.slotDidMove(slot, to: owner)
            for shard in parts.shards {
                shard.deliverNotice { shard.ownerDidChange(of: slot, to: owner, isHere: owner == node) }
            }
        }
        directory.beforeAnswers(ownerIsKnown)
        watch.beforeAssigned { [directory, node] slot in
            // Later queries wait until the owner is known here.
            directory.forget(slot)
            ownerIsKnown(slot, node)
        }
        return made
    }

    var store: any PerActorStore { engineStore }
    var alarmRows: (any AlarmRowSource)? { engine is any TablelessEngine ? nil : engineStore.alarmRows }
    func owns(_ actor: String) -> Bool { member.mayStartWork(in: ClusterSlot(of: actor)) }
    func partition(of actor: String) -> Int { ClusterSlot(of: actor).number }

    /// Joins the cluster. Waits for a coordination store that does not respond, up to the membership's `startTimeout`.
    ///
    /// - Parameters:
    ///   - mayContinue: True if `DataLossPolicy.continue` can be followed.
    ///   - release: Deactivates the actors of a slot, in order or at once; returns when all of their work has ended.
    func start(
        on reactors: ReactorGroup, mayContinue: Bool,
        release: @escaping @Sendable (ClusterSlot, _ inOrder: Bool) async -> Void
    ) async throws {
        // A server that failed to listen may be started again.
        guard running.withLock({ $0.isEmpty }) else { return }
        watch.release(by: release)
        if let address {
            let identity = try await makeIdentity()
            let listener = try NodeLinkListener(at: address, self, identity, on: reactors) { [log] in
                log(.notice, "cluster: \($0)")
            }
            let links = NodeLinks(self, identity, on: reactors) { [log] in log(.notice, $0) }
            direct.withLock { $0 = (listener, links, identity) }
            let reached = NodeAddress(host: address.host, port: listener.port)
            member.updateInfo(NodeAnnouncement(reached).bytes)
            exchange.setLinks(links)
        }
        do {
            try await waitForEngine { () async throws(ClusterEngineError) in try await exchange.start() }
        } catch {
            // Free the port before the server is started again.
            if let listener = closeLinks() { await listener.close() }
            throw error
        }
        running.withLock { running in
            running.append(Task { await self.run(mayContinue) })
            running.append(Task { await self.checkLiveNodes() })
            running.append(Task { await self.watchConnections() })
        }
    }

    /// Returns the certificates of the node's links.
    private func makeIdentity() async throws -> NodeLinkIdentity {
        if let certificates { return try NodeLinkIdentity(of: node, certificates, at: engine) }
        let authority = try await waitForEngine { () async throws(ClusterEngineError) in
            try await NodeLinkIdentity.authority(at: engine)
        }
        return try NodeLinkIdentity(of: node, authority: authority, at: engine)
    }

    private func waitForEngine<Response>(
        _ request: () async throws(ClusterEngineError) -> Response
    ) async throws(ClusterEngineError) -> Response {
        try await ClusterEngineError.retry(
            for: startTimeout,
            onFirstFailure: { [log, startTimeout] error in
                log(
                    .warning,
                    "cluster: the start waits up to \(startTimeout) for the coordination store: \(error.message)")
            }, request)
    }

    var hasCertificateFiles: Bool { certificates != nil }

    var certificateRemainingTime: Duration? {
        certificates == nil ? nil : direct.withLock { $0?.identity }?.tls.remainingTime
    }

    func reloadCertificates() throws(TransportError) { try direct.withLock { $0?.identity }?.reload() }

    /// Compares the ends of the logs after each new connection to the coordination store, which may have lost entries.
    private func watchConnections() async {
        let settings = member.settings
        var schedule = LogEndSchedule(
            connections: engine.connectionCount, settling: settings.leaseDuration * 2,
            backoff: Backoff(first: settings.roundInterval, limit: settings.leaseDuration))
        while (try? await Task.sleep(for: settings.roundInterval)) != nil {
            defer { engineStore.endReports() }
            let now = MonotonicClock.nowWithSleep
            guard let check = schedule.due(connections: engine.connectionCount, at: now) else { continue }
            let left = await engineStore.checkEnds(of: check.names, isSettled: check.isSettled)
            schedule.didCheck(left: left, at: MonotonicClock.nowWithSleep)
        }
    }

    /// - Parameter mayContinue: True if `DataLossPolicy.continue` can be followed.
    private func run(_ mayContinue: Bool) async {
        while true {
            do throws(ClusterEngineError) {
                return try await member.run()
            } catch {
                log(.error, "cluster: node \(node.name) has lost all its slots: \(error.message)")
                guard mayContinue, afterDataLoss == .continue, error.code == .dataLoss, !Task.isCancelled else {
                    lastFailure.withLock { $0 = error }
                    hasFailed.update(true)
                    return
                }
            }
            log(
                .error,
                "cluster: node \(node.name) continues with the remaining data of the coordination store")
            engineStore.forgetAll()
            // False for a node that is draining: it ends.
            guard member.restart(), (try? await Task.sleep(for: member.settings.roundInterval)) != nil else { return }
        }
    }

    /// The reason why it has permanently lost all slots; nil otherwise.
    var failure: (any Error)? { lastFailure.withLock { $0 } }

    func waitForFailure() async { for await hasFailed in hasFailed.stream where hasFailed { return } }

    func waitForStopRequest() async {
        for await isRequested in exchange.stopRequests.stream where isRequested { return }
    }

    var metrics: [RouterMetric] {
        let (acquired, lost) = watch.counts
        return RouterMetric.ofNode(
            slots: member.slotCount, liveNodes: member.liveNodes.count, isStoreResponding: member.engineError == nil,
            acquired: acquired, lost: lost)
    }

    func problem() async -> String? {
        if let failure = lastFailure.withLock({ $0 }) { return failure.message }
        if let problem = member.problem { return problem }
        do throws(ClusterEngineError) {
            try await (engine as? any FileBackedEngine)?.checkPath()
            return nil
        } catch {
            return "the coordination store: \(error.message)"
        }
    }

    /// Logs cluster changes, and breaks the channels to nodes that have left, in each round.
    private func checkLiveNodes() async {
        await withTaskGroup(of: Void.self) { group in
            // Separate, because the other one waits for the coordination store, also during its outage.
            group.addTask { await self.logRounds() }
            group.addTask { await self.removeNodes() }
        }
    }

    private func logRounds() async {
        var nodeLog = NodeLog(node)
        var expiryLog = CertificateExpiryLog()
        while (try? await Task.sleep(for: member.settings.roundInterval)) != nil {
            for line in nodeLog.lines(
                nodes: member.liveNodesRead.nodes, slots: member.slotCount, engineError: member.engineError,
                problem: member.problem, at: MonotonicClock.nowWithSleep)
            { log(line.level, line.text) }
            if let remaining = direct.withLock({ $0?.identity })?.tls.remainingTime,
                let line = expiryLog.line(remaining: remaining, at: MonotonicClock.now)
            {
                log(line.level, line.text)
            }
        }
    }

    private func removeNodes() async {
        while (try? await Task.sleep(for: member.settings.roundInterval)) != nil {
            let (liveNodes, reads) = member.liveNodesRead
            // A node that cannot read the list of live nodes does not find itself in it either.
            guard liveNodes.contains(node) else { continue }
            await exchange.removeNodes(allBut: liveNodes, reads: reads)
            // A node that is being stopped is not live, and keeps its link while messages are exchanged with it.
            direct.withLock { $0?.links }?.closeLinks(except: liveNodes + exchange.nodes)
        }
    }

    /// Releases its slots, and continues to forward its clients' calls.
    ///
    /// - Parameter limit: The maximum time; zero waits for no slot. Slots that are still owned then, for example during an outage of
    ///   the coordination store, get other owners when their leases expire.
    func drain(within limit: Duration) async {
        exchange.announceLeaving()
        let member = member
        let isDone = await FirstReply.wait(within: limit) { answer in
            Task {
                await member.drain()
                answer(true)
            }
        }
        guard isDone == nil else { return }
        guard limit > .zero else {
            guard member.slotCount > 0 else { return }
            return log(
                .notice,
                "cluster: node \(node.name) stops without time to release its slots; other nodes take the slots when its leases expire"
            )
        }
        let (owned, leaving) = (member.slotCount, member.leavingSlotCount)
        log(
            .warning,
            "cluster: node \(node.name) did not release \(owned.counted("slot")) within \(limit) and stops: "
                + (member.engineError?.message ?? "\(leaving) of them wait for the calls of their actors")
                + "; other nodes take the slots when its leases expire")
    }

    /// Returns when other nodes have the responses of this node, or after at most two seconds. A response that waits for the stream
    /// updates of its call would be lost with the process, and its call would have an unknown outcome.
    func flush() async {
        await waitForDeliveries()
        await exchange.flush()
    }

    /// Accepts no further messages of other nodes, and returns when they know which ones were accepted, or after at most four seconds.
    func endExchange() async {
        await exchange.refuseMessages()
        // The last accepted messages are handled.
        for shard in parts.shards { await shard.shard.reactor.perform {} }
        await flush()
        await exchange.end()
    }

    private func waitForDeliveries() async {
        await NodeTransport.wait { pendingDeliveries.hasWaitingMessages }
    }

    /// Stops the exchange of messages with other nodes.
    func stopExchange() { exchange.stopExchange() }

    /// Ends like a crashed node: releases no slots, and stops all communication.
    func stop() {
        parts.set([])
        for task in running.withLock({ $0 }) { task.cancel() }
        exchange.close()
        if let listener = closeLinks() { Task { await listener.close() } }
    }

    /// The number of open direct links, for tests.
    var openLinkCount: Int { direct.withLock { $0?.links }?.openCount ?? 0 }

    /// Identifies the certificate of new links, for tests.
    var linkCertificate: ObjectIdentifier? { direct.withLock { $0?.identity }.map { ObjectIdentifier($0.tls) } }

    /// Cuts all direct links, for tests of network failures.
    func cutLinks() { direct.withLock { $0?.links }?.resetLinks() }

    /// - Returns: The listener, which the caller must close.
    private func closeLinks() -> NodeLinkListener? {
        let direct = direct.withLock { direct in
            defer { direct = nil }
            return direct
        }
        direct?.links.close()
        return direct?.listener
    }
}

extension ClusterRouter: NodeLinkOwner {
    func announcement(of node: ClusterNode) -> NodeAnnouncement? {
        member.info(of: node).flatMap { NodeAnnouncement($0) }
    }
    func handled(from node: ClusterNode) -> UInt64 { exchange.handled(from: node) }
    func receive(_ message: [UInt8], from node: ClusterNode) -> Bool { exchange.receive(message, from: node) }
    func mayHaveLost(_ node: ClusterNode) { exchange.closeLostChannels(of: node) }
}

extension RouterMetric {
    /// Returns the metrics of a cluster node.
    static func ofNode(
        slots: Int, liveNodes: Int, isStoreResponding: Bool, acquired: UInt64, lost: UInt64
    ) -> [RouterMetric] {
        [
            RouterMetric("trebuchet_cluster_slots", "Slots that this node owns.", UInt64(slots)),
            RouterMetric("trebuchet_cluster_nodes", "Live nodes seen by this node.", UInt64(liveNodes)),
            RouterMetric(
                "trebuchet_cluster_engine_up", "1 while the coordination store responds, else 0.",
                isStoreResponding ? 1 : 0),
            RouterMetric(
                "trebuchet_cluster_slots_acquired_total", isCounter: true, "Slot leases acquired by this node.",
                acquired),
            RouterMetric(
                "trebuchet_cluster_slots_lost_total", isCounter: true, "Slots released or lost by this node.", lost),
        ]
    }
}
