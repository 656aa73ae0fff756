internal import Platform
internal import Synchronization
internal import TrebuchetActors
public import TrebuchetCluster

/// Makes a server a cluster node: actors exposed with `placement: .cluster` live on one node each, and are called and observed
/// from all nodes.
///
///     let engine = try RedisEngine(url: "redis://127.0.0.1:6379")
///     let server = TrebuchetServer(
///         transport: .webSocket(port: 8080), cluster: try ClusterMembership(of: "east-1", at: engine))
///     server.expose(Match.self, as: "matches/*", placement: .cluster) { id in … }
///
/// Each server needs a separate membership, which is used once: a restarted server is another node.
public final class ClusterMembership: Sendable {
    /// The node: its name and its incarnation.
    public let node: ClusterNode
    /// The slots that it owns.
    public let member: ClusterMember
    let engine: any ClusterEngine
    let watch = SlotReleaseHandler()
    let store: EngineStore
    let address: NodeAddress?
    let certificates: NodeCertificateFiles?
    /// The reaction of the server to a data loss of the coordination store.
    public let dataLossPolicy: DataLossPolicy
    let startTimeout: Duration

    /// Creates a membership.
    ///
    /// - Parameters:
    ///   - name: The name of the node, unique among the nodes; up to 64 letters, digits, dots, hyphens and underscores of ASCII.
    ///   - engine: The coordination store, the same for all nodes. The server does not close it.
    ///   - settings: Timing of leases and rounds, the same for all nodes.
    ///   - address: The address for direct links from other nodes. Without it, or if it is unreachable, their messages go through
    ///     the coordination store.
    ///   - certificates: The certificate of the node for direct links and the authority that it trusts. By default the nodes
    ///     make certificates, with an authority in the coordination store.
    ///   - dataLossPolicy: The reaction of the server to a data loss of the coordination store. By default it ends.
    ///   - startTimeout: The time for which the start of the server waits for a coordination store that does not respond.
    /// - Throws: `ClusterEngineError` of code `invalid` for an invalid name, and for inconsistent settings.
    public convenience init(
        of name: String, at engine: any ClusterEngine, settings: ClusterMemberSettings = ClusterMemberSettings(),
        address: NodeAddress? = nil, certificates: NodeCertificateFiles? = nil, dataLossPolicy: DataLossPolicy = .end,
        startTimeout: Duration = .seconds(30)
    ) throws(ClusterEngineError) {
        try self.init(
            of: name, at: engine, settings: settings, address: address, certificates: certificates,
            dataLossPolicy: dataLossPolicy, startTimeout: startTimeout
        ) {
            MonotonicClock.nowWithSleep
        }
    }

    /// - Parameter clock: A monotonic clock in nanoseconds.
    package init(
        of name: String, at engine: any ClusterEngine, settings: ClusterMemberSettings, address: NodeAddress? = nil,
        certificates: NodeCertificateFiles? = nil,
        dataLossPolicy: DataLossPolicy = .end, startTimeout: Duration = .seconds(30),
        clock: @escaping @Sendable () -> UInt64
    ) throws(ClusterEngineError) {
        node = try ClusterNode(name: name)
        self.engine = engine
        self.address = address
        self.certificates = certificates
        self.dataLossPolicy = dataLossPolicy
        self.startTimeout = startTimeout
        let member = try ClusterMember(node, at: engine, settings: settings, listener: watch, clock: clock)
        self.member = member
        store = EngineStore(
            engine, didLose: { member.didLose($0, $1) }, known: { member.knownLease(of: $0) },
            lease: { member.lease(of: $0) })
    }
}

/// The reaction of a node to a data loss of its coordination store: the store was emptied, a fence decreased, or a log lacks
/// acknowledged entries that the node cannot write again. In any case the node refuses writes at once and logs the loss with the
/// level `error`.
public enum DataLossPolicy: String, Sendable, CaseIterable {
    /// `TrebuchetServer.run()` ends in order and throws `dataLoss`. The next process continues with the remaining data; an
    /// emptied store begins a new generation.
    case end
    /// The server continues with the remaining data; an emptied store begins a new generation. The server's
    /// connections and its node-local actors stay. A server whose accounts are in the coordination store ends nevertheless.
    case `continue`
}

/// Receives the slot changes of a node and passes them to the server.
final class SlotReleaseHandler: SlotRebalanceListener {
    /// Deactivates the actors of a slot, in order or at once; returns when none of them does any more work.
    typealias Release = @Sendable (ClusterSlot, _ inOrder: Bool) async -> Void

    /// A struct: a closure that a mutex holds directly is wrapped once more with each access.
    private struct Handlers {
        var release: Release?
        var acquired: (@Sendable (ClusterSlot) -> Void)?
        var assigned: (@Sendable (ClusterSlot) -> Void)?
    }

    private let handlers = Mutex(Handlers())
    private let state = Mutex<(events: EventBus?, acquired: UInt64, lost: UInt64)>((nil, 0, 0))

    /// Sets the closure that deactivates the actors of a slot; called by the server, which is created after the member.
    func release(by body: @escaping Release) { handlers.withLock { $0.release = body } }

    /// Calls `body` with each slot that the node acquires, before other code here knows of it.
    func beforeAssigned(_ body: @escaping @Sendable (ClusterSlot) -> Void) { handlers.withLock { $0.acquired = body } }

    /// Calls `body` with each slot that the node acquires.
    func whenAssigned(_ body: @escaping @Sendable (ClusterSlot) -> Void) { handlers.withLock { $0.assigned = body } }

    /// Sends slot changes to `events`.
    func setEventBus(_ events: EventBus) { state.withLock { $0.events = events } }

    /// The numbers of slots acquired and lost so far.
    var counts: (acquired: UInt64, lost: UInt64) { state.withLock { ($0.acquired, $0.lost) } }

    func slotWillBeAssigned(_ lease: SlotLease) { handlers.withLock { $0.acquired }?(lease.slot) }

    func slotAssigned(_ lease: SlotLease) {
        let events = state.withLock { state in
            state.acquired += 1
            return state.events
        }
        events?.emit(.slotAcquired(lease.slot.number, fence: lease.fence))
        handlers.withLock { $0.assigned }?(lease.slot)
    }

    func slotWillBeRevoked(_ lease: SlotLease) async {
        handleLoss(of: lease.slot)
        await handlers.withLock { $0.release }?(lease.slot, true)
    }

    private func handleLoss(of slot: ClusterSlot) {
        let events = state.withLock { state in
            state.lost += 1
            return state.events
        }
        events?.emit(.slotLost(slot.number))
    }

    func slotLost(_ lease: SlotLease) {
        handleLoss(of: lease.slot)
        guard let release = handlers.withLock({ $0.release }) else { return }
        Task { await release(lease.slot, false) }
    }
}
