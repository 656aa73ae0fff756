// The code of Docs/Guides/HowTo.md. It uses the public interface only, as an app's package does.

public import Distributed
public import Trebuchet

public struct TodoState: Codable, Sendable {
    public var titles: [String] = []
    public init() {}
}

@Resolvable
public protocol TodoService: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func add(title: String) async throws -> Int
}

extension TodoService {
    /// The stream of the actor's `@StreamedState var state`.
    public nonisolated var observeState: StateObservation<Self, TodoState> { observation("observeState") }
}

@Trebuchet
distributed actor TodoKeeper: TodoService {
    @StreamedState var state: TodoState = TodoState()

    distributed func add(title: String) -> Int {
        state.titles.append(title)
        return state.titles.count
    }
}

func serveTodos(port: Int) async throws -> TrebuchetServer {
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port))
    await server.expose(TodoKeeper(actorSystem: server.actorSystem), as: "todos")
    try await server.start()
    return server
}

func addMilk(_ client: TrebuchetClient) async throws -> [String] {
    let todos: some TodoService = try client.resolve($TodoService.self, id: "todos")
    _ = try await todos.add(title: "Milk")
    for await state in await todos.observeState() { return state.titles }
    return []
}

@Trebuchet
distributed actor Vault {
    /// Sent to every subscriber as a whole: put no secrets in it.
    @StreamedState var visits: Int = 0
    /// Never leaves the server.
    private let secret = "swordfish"

    distributed func open(guess: String) throws -> Bool {
        // The client chooses the arguments. The server's access policy determines the principal.
        guard Caller.current?.principal?.roles.contains("keeper") == true else {
            throw TrebuchetError(.unauthorized, "only keepers open the vault")
        }
        visits += 1
        return isRight(guess)
    }

    /// Not distributed: server code can call it, clients cannot.
    func isRight(_ guess: String) -> Bool { guess == secret }
}

func serveWithKeys(_ keys: [String: Principal]) async throws -> TrebuchetServer {
    var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
    access.authorize = { caller, actorID, target in
        target.hasPrefix("observe") || caller?.principal?.roles.contains("keeper") == true
    }
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
    await server.expose(Vault(actorSystem: server.actorSystem), as: "vault")
    try await server.start()
    return server
}

func connect(to port: Int, key: String) async throws -> TrebuchetClient {
    var options = TrebuchetClient.Options()
    options.token = { key }  // called for each new connection
    let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
    try await client.connect()  // TransportError.handshake: "… responded with 401 …: unknown API key"
    return client
}

func tokenAccess(secret: [UInt8]) throws -> AccessPolicy {
    let verifier = try JSONWebTokenVerifier(
        key: .hs256(secret), audience: "todos", issuer: "https://id.example")
    return AccessPolicy(authenticate: AccessPolicy.jsonWebTokens(verifier))
}

func secureServer(folder: String) -> TrebuchetServer {
    let tls = TLSServerSettings(
        certificateChainFile: folder + "/server.pem", privateKeyFile: folder + "/server.key")
    return TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0, tls: tls))
}

func secureClient(folder: String, port: Int) -> TrebuchetClient {
    let tls = TLSClientSettings(trust: .file(folder + "/ca.pem"))
    return TrebuchetClient(transport: .webSocket(host: "localhost", port: port, tls: tls))
}

func rates() -> ServerLimits {
    var limits = ServerLimits()
    limits.calls.rate.perConnection = RateLimit(callsPerSecond: 50, burst: 100)
    limits.calls.rate.perMethod[RatedMethod("add(title:)", of: TodoKeeper.self)] = RateLimit(
        callsPerSecond: 2, burst: 5)
    return limits
}

func addPatiently(_ title: String, to todos: some TodoService) async throws -> Int {
    let clock = ContinuousClock()
    while true {
        do {
            return try await todos.add(title: title)
        } catch let error as TrebuchetError where error.code == .rateLimited {
            guard let wait = error.retryAfter else { throw error }  // nil: not a rate limit, waiting does not help
            try await clock.sleep(for: wait)
        }
    }
}

@Trebuchet
distributed actor Arena {
    struct Player: Codable, Sendable, Equatable {
        var score = 0
    }
    struct State: Codable, Sendable {
        var players: [String: Player] = [:]
        var round = 0
    }
    @StreamedState var state: State = State()

    distributed func score(_ player: String, points: Int) { state.players[player, default: Player()].score += points }
    distributed func nextRound() { state.round += 1 }
}

func watch(_ player: String, in arena: Arena) async -> StateStream<Arena.Player?> {
    let filter = StreamFilter.path(steps: ["players", player]).atMost(every: .milliseconds(100))
    return await arena.observeState(filter: filter, as: Arena.Player?.self)
}
