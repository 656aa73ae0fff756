import Platform
import Synchronization
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetActors

@testable import TrebuchetCluster

/// A server that is one of several nodes of this process.
final class Node: Sendable {
    let server: TrebuchetServer
    let member: ClusterMember
    private let engine: MemoryEngine
    private let clients = Mutex<[TrebuchetClient]>([])
    let membership: ClusterMembership
    let address = Mutex<SocketAddress?>(nil)

    /// - Parameter way: through which it uses the engine.
    init(
        _ name: String, _ engine: MemoryEngine, through way: (any ClusterEngine)? = nil, access: AccessPolicy = .open,
        limits: ServerLimits = ServerLimits(), settings: ClusterMemberSettings = Node.settings, rule: NodeRule? = nil
    ) throws {
        membership = try ClusterMembership(of: name, at: way ?? engine, settings: settings)
        member = membership.member
        self.engine = engine
        server = TrebuchetServer(
            transport: .webSocket(port: 0), reactors: 2, limits: limits, access: access,
            cluster: membership, log: { _ in })
        let system = server.actorSystem
        server.expose(Tally.self, as: "tallies/*", placement: .cluster) { _ in Tally(actorSystem: system) }
        server.expose(Till.self, as: "tills/*", placement: .cluster) { _ in Till(actorSystem: system) }
        server.expose(Board.self, as: "boards/*", placement: .cluster) { _ in Board(actorSystem: system) }
        if let rule { server.authorize { rule(name, $0, $2) } }
    }

    /// Short rounds, so that tests do not take long, and leases that no busy machine outlasts.
    static var settings: ClusterMemberSettings {
        var settings = ClusterMemberSettings()
        settings.leaseDuration = .seconds(20)
        settings.leaseMargin = .seconds(2)
        settings.roundInterval = .milliseconds(50)
        settings.handoversAtOnce = 256
        return settings
    }

    func start() async throws {
        let found = try await server.start()
        address.withLock { $0 = found }
    }

    func textClient() async throws -> TextClient { try await TextClient(#require(address.withLock { $0 })) }

    /// Names of actors that it owns.
    func names(_ count: Int) -> [String] {
        let own = (0...).lazy.map { "tallies/\($0)" }.filter { self.member.lease(of: ClusterSlot(of: $0)) != nil }
        return Array(own.prefix(count))
    }

    func client(_ options: TrebuchetClient.Options = .init()) async throws -> TrebuchetClient {
        let address = try #require(address.withLock { $0 })
        let client = TrebuchetClient(
            transport: .webSocket(host: address.host, port: address.port), options: options)
        clients.withLock { $0.append(client) }
        try await client.connect()
        return client
    }

    /// A client that knows all of them.
    static func client(of nodes: [Node]) async throws -> TrebuchetClient {
        let addresses = try nodes.map { try #require($0.address.withLock { $0 }) }
        let client = TrebuchetClient(transports: addresses.map { .webSocket(host: $0.host, port: $0.port) })
        nodes[0].clients.withLock { $0.append(client) }
        try await client.connect()
        return client
    }

    func owns(_ name: String) -> Bool { member.lease(of: ClusterSlot(of: name)) != nil }

    /// Names that it owns.
    func names(_ prefix: String, _ count: Int = 1) -> [String] {
        Array((0...).lazy.map { "\(prefix)/\($0)" }.filter { self.owns($0) }.prefix(count))
    }

    /// As if its process had been killed, and the time of its leases had passed.
    func kill() async throws {
        await server.cut()
        try engine.expire(member.node)
    }

    func end() async {
        for client in clients.withLock({ $0 }) { await client.close() }
        await server.cut()
    }
}

/// Whether a node lets somebody call or observe something.
typealias NodeRule = @Sendable (_ node: String, _ caller: Caller?, _ target: String) -> Bool

/// Runs `body` with nodes that own all slots, each its part.
func withNodes(
    _ names: [String], engine: MemoryEngine = MemoryEngine(), through way: (any ClusterEngine)? = nil,
    access: AccessPolicy = .open, limits: ServerLimits = ServerLimits(), rule: NodeRule? = nil,
    _ body: ([Node]) async throws -> Void
) async throws {
    let nodes = try names.map { try Node($0, engine, through: way, access: access, limits: limits, rule: rule) }
    do {
        for node in nodes { try await node.start() }
        await ownAll(nodes)
        try await body(nodes)
    } catch {
        for node in nodes { await node.end() }
        throw error
    }
    for node in nodes { await node.end() }
}

/// Waits until nodes own all slots, each those that it is to have: none moves any more.
func ownAll(_ nodes: [Node]) async {
    let plan = SlotPlan(nodes.map(\.member.node))
    let parts = nodes.map { plan.slots(of: $0.member.node).count }
    #expect(await eventually { nodes.map(\.member.slotCount) == parts })
}

/// Counts.
@Trebuchet
distributed actor Tally {
    @StreamedState(delivery: .every(), persisted: true) var count: Int = 0
    @StreamedEvents var marks: Int
    private var last = 0

    distributed func add(_ number: Int) -> Int {
        if number != 0 { count += number }
        $marks.send(number)
        return count
    }
    @Idempotent distributed func addOnce(_ number: Int) -> Int {
        count += number
        return count
    }
    /// Whether it comes behind the one before.
    distributed func follow(_ number: Int) -> Bool {
        defer { last = number }
        return number > last
    }
    distributed func refuse() throws { throw TrebuchetError(.unauthorized, "not you") }
    /// Until it is cancelled.
    distributed func wait() async throws {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
        try Task.checkCancellation()
    }
    distributed func caller() -> String { Caller.current?.principal?.id ?? "nobody" }
}

/// Set once, by whoever.
final class Flag: Sendable {
    private let value = Mutex(false)

    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
}
