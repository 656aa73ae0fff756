import NodeSupport
import Platform
import Synchronization
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetActors
import TrebuchetCluster
import TrebuchetNodes

extension Node {
    /// A node with the actors of these tests.
    convenience init(
        _ name: String, _ engine: MemoryEngine, through engineRoute: (any ClusterEngine)? = nil,
        access: AccessPolicy = .open,
        limits: ServerLimits = ServerLimits(), settings: ClusterMemberSettings = Node.settings,
        clock: ManualEngineClock? = nil, isReached: Bool = false, certificates: NodeCertificateFiles? = nil,
        rule: NodeRule? = nil, log: (any ServerEventHandler)? = nil
    ) throws {
        var access = access
        if let rule { access.authorize = { rule(name, $0, $2) } }
        try self.init(
            name, engine, through: engineRoute, access: access, limits: limits, settings: settings, clock: clock,
            isReached: isReached, certificates: certificates, log: log
        ) { server in
            let system = server.actorSystem
            server.expose(Tally.self, as: "tallies/*", placement: .cluster) { _ in Tally(actorSystem: system) }
            server.expose(OrderedCallLog.self, as: "rolls/*", placement: .cluster) { _ in
                OrderedCallLog(actorSystem: system)
            }
            server.expose(Shelf.self, as: "shelves/*", placement: .cluster) { _ in Shelf(actorSystem: system) }
            server.expose(CashRegister.self, as: "tills/*", placement: .cluster) { _ in
                CashRegister(actorSystem: system)
            }
            server.expose(LargeStateActor.self, as: "boards/*", placement: .cluster) { _ in
                LargeStateActor(actorSystem: system)
            }
            server.expose(CrossNodeCaller.self, as: "clerks/*", placement: .cluster) { _ in
                CrossNodeCaller(actorSystem: system)
            }
            server.expose(PersistedEventActor.self, as: "chimes/*", placement: .cluster) { _ in
                PersistedEventActor(actorSystem: system)
            }
        }
    }

    func textClient() async throws -> TextClient { try await TextClient(address) }

    /// Names of actors that the node owns.
    func names(_ count: Int) -> [String] { names("tallies", count) }
}

/// Returns whether a node authorizes a caller to call or observe an actor.
typealias NodeRule = @Sendable (_ node: String, _ caller: Caller?, _ target: String) -> Bool

/// Runs `body` with nodes that own all slots in equal parts.
func withNodes(
    _ names: [String], engine: MemoryEngine = MemoryEngine(), through engineRoute: (any ClusterEngine)? = nil,
    access: AccessPolicy = .open, limits: ServerLimits = ServerLimits(), areReached: Bool = false,
    rule: NodeRule? = nil, _ body: ([Node]) async throws -> Void
) async throws {
    let nodes = try names.map {
        try Node($0, engine, through: engineRoute, access: access, limits: limits, isReached: areReached, rule: rule)
    }
    try await Node.with(nodes) { try await body(nodes) }
}

/// Waits until the nodes own all slots in equal parts and no slot moves.
func ownAll(_ nodes: [Node]) async { #expect(await Node.ownAll(nodes)) }

/// A counter.
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
    /// True if the number follows the previous one.
    distributed func follow(_ number: Int) -> Bool {
        defer { last = number }
        return number > last
    }
    distributed func refuse() throws { throw TrebuchetError(.unauthorized, "not you") }
    /// Waits until the call is cancelled.
    distributed func wait() async throws {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
        try Task.checkCancellation()
    }
    /// Signs the caller in under this name.
    distributed func claim(_ name: String) {
        Caller.current?.connection.principal = Principal(id: name, roles: ["admin"])
        Caller.current?.connection.onClose {}
    }
    distributed func revoke() { Caller.current?.connection.revokeAccess("gone") }
    distributed func handlers() -> Int { Caller.current?.connection.closeHandlerCount ?? -1 }
    distributed func caller() -> String {
        guard let caller = Caller.current else { return "nobody" }
        return caller.isServer ? "a server" : caller.principal?.id ?? "nobody"
    }
}

/// A flag that any thread may set once.
final class Flag: Sendable {
    private let value = Mutex(false)

    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
}
