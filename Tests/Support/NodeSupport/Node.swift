internal import Platform
internal import Synchronization
internal import TestSupport
package import Transports
package import Trebuchet
package import TrebuchetCluster
package import TrebuchetNodes

/// A server that is one of several nodes in this process.
package final class Node: Sendable {
    package let server: TrebuchetServer
    package let member: ClusterMember
    private let engine: MemoryEngine
    private let clients = Mutex<[TrebuchetClient]>([])
    package let membership: ClusterMembership
    private let place = Mutex<SocketAddress?>(nil)

    /// - Parameters:
    ///   - way: the engine through which it uses the coordination store.
    ///   - clock: the clock of its leases. The member reads it an hour ahead: at 0 each handover would count as overdue.
    ///   - isReached: whether other nodes connect to it directly.
    ///   - certificates: the files of its certificate for that; by default it makes one.
    ///   - store: the store of actors that live on this node only.
    ///   - log: receives the lines of its log.
    ///   - expose: exposes actors on it, before it listens.
    package init(
        _ name: String, _ engine: MemoryEngine, through engineRoute: (any ClusterEngine)? = nil,
        access: AccessPolicy = .open,
        limits: ServerLimits = ServerLimits(), settings: ClusterMemberSettings = Node.settings,
        clock: ManualEngineClock? = nil, isReached: Bool = false, certificates: NodeCertificateFiles? = nil,
        afterDataLoss: DataLossPolicy = .end,
        store: (any StateStore)? = nil,
        log: (any ServerEventHandler)? = nil, exposing expose: (TrebuchetServer) -> Void
    ) throws {
        membership = try ClusterMembership(
            of: name, at: engineRoute ?? engine, settings: settings,
            address: isReached ? NodeAddress(host: "127.0.0.1", port: 0) : nil, certificates: certificates,
            dataLossPolicy: afterDataLoss
        ) { clock.map { ($0.milliseconds + 3_600_000) * 1_000_000 } ?? MonotonicClock.nowWithSleep }
        member = membership.member
        self.engine = engine
        server = TrebuchetServer(
            transport: .webSocket(port: 0), reactors: 2, limits: limits, access: access, store: store,
            cluster: membership, log: log)
        expose(server)
    }

    /// Short rounds, so that tests are quick, and leases long enough for a busy machine.
    package static var settings: ClusterMemberSettings {
        var settings = ClusterMemberSettings()
        settings.leaseDuration = .seconds(20)
        settings.leaseMargin = .seconds(2)
        settings.roundInterval = .milliseconds(50)
        settings.concurrentHandovers = 256
        return settings
    }

    package func start() async throws {
        let found = try await server.start()
        place.withLock { $0 = found }
    }

    /// The address at which it listens or has listened.
    package var address: SocketAddress {
        get throws {
            guard let address = place.withLock({ $0 }) else {
                throw TransportError(.closed, "the node does not listen")
            }
            return address
        }
    }

    /// Client options with a call timeout long enough for a busy machine.
    package static var options: TrebuchetClient.Options {
        var options = TrebuchetClient.Options()
        options.callTimeout = .seconds(240)
        return options
    }

    package func client(_ options: TrebuchetClient.Options = Node.options) async throws -> TrebuchetClient {
        try await Self.client(of: [self], options)
    }

    /// A client that knows the addresses of all given nodes.
    package static func client(
        of nodes: [Node], _ options: TrebuchetClient.Options = Node.options
    ) async throws -> TrebuchetClient {
        let client = TrebuchetClient(
            transports: try nodes.map { try $0.address }.map { .webSocket(host: $0.host, port: $0.port) },
            options: options)
        nodes[0].clients.withLock { $0.append(client) }
        try await client.connect()
        return client
    }

    package func owns(_ name: String) -> Bool { member.lease(of: ClusterSlot(of: name)) != nil }

    /// Returns names that the node owns.
    package func names(_ prefix: String, _ count: Int = 1) -> [String] {
        Array((0...).lazy.map { "\(prefix)/\($0)" }.filter { self.owns($0) }.prefix(count))
    }

    /// Stops the node as if its process had been killed and its leases had expired.
    package func kill() async throws {
        await server.cut()
        try engine.expire(member.node)
    }

    package func stop() async {
        for client in clients.withLock({ $0 }) { await client.close() }
        await server.cut()
    }

    /// Starts the nodes, waits until they own all slots in equal parts, runs `body` and stops them.
    package static func with(
        _ nodes: [Node], isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void
    ) async throws {
        do {
            for node in nodes { try await node.start() }
            guard await ownAll(nodes) else { throw TransportError(.closed, "the nodes do not come to own all slots") }
            try await body()
        } catch {
            for node in nodes { await node.stop() }
            throw error
        }
        for node in nodes { await node.stop() }
    }

    /// Waits until the nodes own all slots in equal parts and no slot moves.
    ///
    /// - Returns: false when the time for this has passed.
    package static func ownAll(_ nodes: [Node], isolation: isolated (any Actor)? = #isolation) async -> Bool {
        await eventually {
            nodes.allSatisfy {
                $0.member.slotCount * nodes.count > ClusterSlot.count * 7 / 10 && $0.member.ownsPlannedSlots
            }
                && nodes.reduce(0) { $0 + $1.member.slotCount } == ClusterSlot.count
        }
    }
}
