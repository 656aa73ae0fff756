import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

struct ChatPresence: Codable, Sendable, Equatable {
    var name: String
    var isTyping = false
}

struct Emoji: Codable, Sendable, Equatable {
    var name: String
}

extension Schema.Rooms {
    static let chat = RoomKey<ChatPresence>(type: "chat")
}

extension Schema.Topics {
    static let emoji = TopicKey<Emoji>(roomType: "chat", topic: "emoji")
}

/// A client with separate shared values, as if it were another process.
struct RoomTestClient {
    let client: TrebuchetClient
    let backend: TrebuchetBackend
    let store = SharedStore()

    init(_ client: TrebuchetClient) {
        self.client = client
        backend = TrebuchetBackend(client: client)
    }

    /// A separate store of values.
    init(_ backend: TrebuchetBackend) { (client, self.backend) = (backend.client, backend) }

    func presence(_ name: String, in room: String = "lobby") -> Shared<RoomPresence<ChatPresence>> {
        backend.withCurrent {
            Shared(
                .trebuchetPresence(Schema.Rooms.chat, roomId: room, initialPresence: ChatPresence(name: name)),
                store: store)
        }
    }

    func emoji(in room: String = "lobby") -> Shared<TopicChannel<Emoji>> {
        backend.withCurrent { Shared(.trebuchetTopic(Schema.Topics.emoji, roomId: room), store: store) }
    }

    /// The room's actor, bypassing the client's logic.
    func room(_ name: String = "lobby") throws -> Room { try client.resolve(Room.self, id: "rooms/chat-\(name)") }
}

/// A server with rooms.
struct RoomTestEnvironment {
    let server: TrebuchetServer
    let host: RoomHost
    let address: SocketAddress

    static func run(
        _ limits: RoomLimits = RoomLimits(), rules: any RoomRules = OpenRooms(),
        serverLimits: ServerLimits = ServerLimits(), access: AccessPolicy = AccessPolicy(),
        mayCall: (@Sendable (Caller?, String, String) -> Bool)? = nil,
        isolation: isolated (any Actor)? = #isolation, _ body: (RoomTestEnvironment) async throws -> Void
    ) async throws {
        var access = access
        access.identifiesCallers = true
        access.authorize = mayCall
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, limits: serverLimits, access: access)
        let host = RoomHost.expose(on: server, rules: rules, limits: limits)
        let address = try await server.start()
        do {
            try await body(RoomTestEnvironment(server: server, host: host, address: address))
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    /// A client over a WebSocket that is not connected yet.
    ///
    /// - Parameters:
    ///   - token: the token for its connection.
    ///   - undecodable: receives values that the guest's types cannot decode.
    func guest(
        through link: FaultyLink? = nil, as token: String? = nil,
        undecodable: @escaping @Sendable (UndecodableValue) -> Void = UndecodableValue.warn
    ) -> RoomTestClient {
        let address = link?.address ?? address
        var options = TrebuchetClient.Options()
        // One direction of a connection may fail without the other: this must be detected long before a test times out. A connection
        // without faults must last, however slow the machine is.
        if link != nil { (options.pingInterval, options.pongTimeout) = (.seconds(1), .seconds(2)) }
        // The default is too short for the longest of these calls on a busy machine.
        options.callTimeout = .seconds(240)
        if let token { options.token = { token } }
        options.onUndecodable = undecodable
        return RoomTestClient(
            TrebuchetClient(transport: .webSocket(host: address.host, port: address.port), options: options))
    }

    func roster(_ name: String = "lobby") async throws -> Roster {
        let room = try #require(host.room("chat-\(name)"))
        return try #require(
            await room.whenLocal { room in
                room.publishPresences()
                return room.roster
            })
    }
}

/// Values as literals of tests.
extension StoredJSON {
    static let null = StoredJSON(.null)
    static func integer(_ value: Int64) -> StoredJSON { StoredJSON(.integer(value)) }
    static func string(_ text: String) -> StoredJSON { StoredJSON(.string(text)) }
    static func array(_ elements: [JSONValue]) -> StoredJSON { StoredJSON(.array(elements)) }
    static func object(_ members: JSONObject) -> StoredJSON { StoredJSON(members) }
}

/// Calls that bypass the client's logic.
extension Room {
    nonisolated func join(presence: JSONValue, token: String?, attempt: String?) async throws -> RoomTicket {
        try await join(presence: EncodedJSON(presence), token: token, attempt: attempt)
    }
    nonisolated func setPresence(_ presence: JSONValue) async throws { try await setPresence(EncodedJSON(presence)) }
    nonisolated func patchPresence(_ patch: JSONValue) async throws { try await patchPresence(EncodedJSON(patch)) }
    @discardableResult
    nonisolated func publish(topic: String, payload: JSONValue) async throws -> Int {
        try await publish(topic: topic, payload: EncodedJSON(payload))
    }
}

/// Returns when the value meets the condition.
func wait<Value: Sendable>(for shared: Shared<Value>, until condition: @Sendable (Value) -> Bool) async {
    for await value in shared.updates where condition(value) { return }
}
