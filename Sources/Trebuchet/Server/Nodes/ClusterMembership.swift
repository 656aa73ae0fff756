internal import Platform
internal import Synchronization
package import TrebuchetActors
public import TrebuchetCluster

/// What makes a server one of several nodes: actors that are exposed with `placement: .cluster` live on one of them each, and are
/// called and observed from all.
///
///     let engine = try RedisEngine(url: "redis://127.0.0.1:6379")
///     let server = TrebuchetServer(
///         transport: .webSocket(port: 8080), cluster: try ClusterMembership(of: "east-1", at: engine))
///     server.expose(Match.self, as: "matches/*", placement: .cluster) { id in … }
///
/// Each server has one of its own, which is used once: a server that starts again is another node.
public final class ClusterMembership: Sendable {
    /// The node's name, and which life of it this is.
    public let node: ClusterNode
    /// What slots it owns.
    public let member: ClusterMember
    let engine: any ClusterEngine
    let watch = SlotWatch()
    let store: EngineStore
    let address: NodeAddress?
    /// What the server does when the engine has lost what it kept.
    public let afterDataLoss: DataLossPolicy

    /// - Parameters:
    ///   - name: unlike that of other nodes; up to 64 letters, digits, dots, hyphens and underscores of ASCII.
    ///   - engine: the same for all nodes. The server does not close it.
    ///   - settings: the same for all nodes.
    ///   - address: where the other nodes reach this one directly. Without it, and where it cannot be reached, what they send goes through
    ///     the engine.
    ///   - afterDataLoss: what the server does when the engine has lost what it kept. By default it ends.
    /// - Throws: `invalid` for such a name, and for settings that do not fit each other.
    public convenience init(
        of name: String, at engine: any ClusterEngine, settings: ClusterMemberSettings = ClusterMemberSettings(),
        address: NodeAddress? = nil, afterDataLoss: DataLossPolicy = .end
    ) throws(ClusterEngineError) {
        try self.init(of: name, at: engine, settings: settings, address: address, afterDataLoss: afterDataLoss) {
            MonotonicClock.nowWithSleep
        }
    }

    /// - Parameter clock: nanoseconds, never less than before.
    package init(
        of name: String, at engine: any ClusterEngine, settings: ClusterMemberSettings, address: NodeAddress? = nil,
        afterDataLoss: DataLossPolicy = .end, clock: @escaping @Sendable () -> UInt64
    ) throws(ClusterEngineError) {
        node = try ClusterNode(name: name)
        self.engine = engine
        self.address = address
        self.afterDataLoss = afterDataLoss
        let member = try ClusterMember(node, at: engine, settings: settings, listener: watch, clock: clock)
        self.member = member
        store = EngineStore(engine, didLose: { member.didLose($0, $1) }) { member.lease(of: $0) }
    }
}

/// What a node does when its engine has lost what it kept: it was emptied, or a fence fell. In any case the node refuses writes at once and
/// says so in the log with the level `error`.
public enum DataLossPolicy: String, Sendable, CaseIterable {
    /// `TrebuchetServer.run()` ends in order and throws `dataLoss`. The process that is started next begins a new generation of what is there.
    case end
    /// The server goes on and begins a new generation of what is there: its connections and the actors that are its own stay. A server whose
    /// accounts are kept at the engine ends all the same.
    case `continue`
}

/// An engine that keeps what it has in a file of this machine.
package protocol PlacedEngine: ClusterEngine {
    /// Throws when the file cannot be read, or is not where it was: for readiness.
    func checkPlace() async throws(StateStoreError)
}

/// Where the actors of a name live.
public enum ActorPlacement: Sendable {
    /// On each server its own.
    case node
    /// On one node of the cluster, which owns the slot of the name; at a server that is none, the same as `node`.
    case cluster
}

/// Hears which slots a node owns, and hands on what is to be let go.
final class SlotWatch: SlotRebalanceListener {
    /// Lets go of what lives in a slot, in order or at once; returns when nothing of it does anything any more.
    typealias Release = @Sendable (ClusterSlot, _ inOrder: Bool) async -> Void

    /// A struct, as a function that a mutex holds directly is wrapped once more with each access.
    private struct Handlers {
        var release: Release?
        var acquired: (@Sendable (ClusterSlot) -> Void)?
        var assigned: (@Sendable (ClusterSlot) -> Void)?
    }

    private let handlers = Mutex(Handlers())
    private let told = Mutex<(events: ServerEvents?, taken: UInt64, lost: UInt64)>((nil, 0, 0))

    /// Set by the server, which is made after the member.
    func release(by body: @escaping Release) { handlers.withLock { $0.release = body } }

    /// Calls `body` with each slot that the node comes to own, before anything here can know it.
    func beforeAssigned(_ body: @escaping @Sendable (ClusterSlot) -> Void) { handlers.withLock { $0.acquired = body } }

    /// Calls `body` with each slot that the node comes to own.
    func whenAssigned(_ body: @escaping @Sendable (ClusterSlot) -> Void) { handlers.withLock { $0.assigned = body } }

    /// Tells `events` of slots that come and go.
    func tell(_ events: ServerEvents) { told.withLock { $0.events = events } }

    /// How many it has taken and lost so far.
    var counts: (taken: UInt64, lost: UInt64) { told.withLock { ($0.taken, $0.lost) } }

    func slotWillBeAssigned(_ lease: SlotLease) { handlers.withLock { $0.acquired }?(lease.slot) }

    func slotAssigned(_ lease: SlotLease) {
        let events = told.withLock { told in
            told.taken += 1
            return told.events
        }
        events?.tell(.slotTaken(lease.slot.number, fence: lease.fence))
        handlers.withLock { $0.assigned }?(lease.slot)
    }

    func slotWillBeRevoked(_ lease: SlotLease) async {
        noteLoss(of: lease.slot)
        await handlers.withLock { $0.release }?(lease.slot, true)
    }

    private func noteLoss(of slot: ClusterSlot) {
        let events = told.withLock { told in
            told.lost += 1
            return told.events
        }
        events?.tell(.slotLost(slot.number))
    }

    func slotLost(_ lease: SlotLease) {
        noteLoss(of: lease.slot)
        guard let release = handlers.withLock({ $0.release }) else { return }
        Task { await release(lease.slot, false) }
    }
}
