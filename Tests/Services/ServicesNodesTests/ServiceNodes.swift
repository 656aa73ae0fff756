import NodeSupport
import Platform
import SharedState
import TestSupport
import Trebuchet
import TrebuchetCluster

@testable import TrebuchetServices

/// A node with rooms and collections, each owned by one node. Clients are identified by a token, which is their name.
struct ServiceNode: Sendable {
    let node: Node
    let rooms: RoomHost
    let collections: CollectionHost

    init(
        _ name: String, _ engine: MemoryEngine, through engineRoute: (any ClusterEngine)? = nil,
        settings: ClusterMemberSettings = Node.settings, clock: ManualEngineClock? = nil,
        rooms roomLimits: RoomLimits = RoomLimits(), collections collectionLimits: CollectionLimits = CollectionLimits()
    ) throws {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        access.authenticate = { request in request.bearerToken.map { Principal(id: $0) } }
        var hosts: (RoomHost, CollectionHost)?
        node = try Node(name, engine, through: engineRoute, access: access, settings: settings, clock: clock) {
            server in
            hosts = (
                RoomHost.expose(on: server, limits: roomLimits, placement: .cluster),
                CollectionHost.expose(on: server, limits: collectionLimits, placement: .cluster)
            )
        }
        guard let hosts else { preconditionFailure("a node exposes before it is there") }
        (rooms, collections) = hosts
    }

    /// The id of a room that the node owns.
    var room: String {
        (0...).lazy.map { "\(node.member.node.name)\($0)" }.first { node.owns("rooms/chat-\($0)") } ?? ""
    }

    /// The name of a collection that the node owns.
    var collection: String {
        (0...).lazy.map { "\(node.member.node.name)\($0)" }.first { node.owns("collections/\($0)") } ?? ""
    }

    /// The sorted principals of the members of its room.
    func members() async -> [String]? {
        await rooms.room("chat-\(room)")?.whenLocal { $0.members().compactMap(\.principal).sorted() }
    }

    /// The current roster of a room; nil when the room is not active here.
    func roster(_ room: String) async -> Roster? {
        await rooms.room("chat-\(room)")?.whenLocal { room in
            room.publishPresences()
            return room.roster
        }
    }
}

/// Runs `body` with nodes that own all slots in equal parts.
func withServices(
    _ names: [String], engine: MemoryEngine = MemoryEngine(), rooms: RoomLimits = RoomLimits(),
    collections: CollectionLimits = CollectionLimits(), isolation: isolated (any Actor)? = #isolation,
    _ body: ([ServiceNode]) async throws -> Void
) async throws {
    let nodes = try names.map { try ServiceNode($0, engine, rooms: rooms, collections: collections) }
    try await Node.with(nodes.map(\.node)) { try await body(nodes) }
}

/// An app that knows one or several nodes, with separate shared values, as if it were another process.
struct App: Sendable {
    let client: TrebuchetClient
    let backend: TrebuchetBackend
    let store = SharedStore()

    init(_ nodes: ServiceNode..., as name: String? = nil) async throws {
        var options = Node.options
        if let name { options.token = { name } }
        options.reconnect.initialDelay = .milliseconds(2)
        options.reconnect.maximumDelay = .milliseconds(20)
        client = try await Node.client(of: nodes.map(\.node), options)
        client.register(errors: CollectionError.self, RoomError.self)
        backend = TrebuchetBackend(client: client)
    }

    func presence(_ name: String, in room: String) -> Shared<RoomPresence<ChatPresence>> {
        backend.withCurrent {
            Shared(
                .trebuchetPresence(Schema.Rooms.chat, roomId: room, initialPresence: ChatPresence(name: name)),
                store: store)
        }
    }

    func numbers(in room: String) -> Shared<TopicChannel<Count>> {
        backend.withCurrent { Shared(.trebuchetTopic(Schema.Topics.numbers, roomId: room), store: store) }
    }

    func notes(
        _ collection: String, where conditions: [QueryCondition] = [], order: [QueryOrder] = []
    ) -> Shared<SyncedCollection<Note>> {
        backend.withCurrent {
            Shared(
                .trebuchetCollection(CollectionKey<Note>(collection), where: conditions, order: order), store: store)
        }
    }

    /// The node of `nodes` that it is connected to.
    func node(of nodes: [ServiceNode]) async -> ServiceNode? {
        for node in nodes where await node.node.server.counters().connections == 1 { return node }
        return nil
    }
}

struct ChatPresence: Codable, Sendable, Equatable {
    var name: String
    var mood = ""
}

struct Count: Codable, Sendable, Equatable {
    var from: String
    var number: Int
}

struct Note: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var text = ""
    var isDone = false
    var tags: [String] = []
}

extension Schema.Rooms { static let chat = RoomKey<ChatPresence>(type: "chat") }
extension Schema.Topics { static let numbers = TopicKey<Count>(roomType: "chat", topic: "numbers") }

/// Returns when the value meets the condition.
func shows<Value: Sendable>(
    _ shared: Shared<Value>, isolation: isolated (any Actor)? = #isolation, _ condition: (Value) -> Bool
) async {
    for await value in shared.updates where condition(value) { return }
}
