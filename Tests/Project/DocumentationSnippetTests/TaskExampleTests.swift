import Foundation
import TestSupport
import Testing
import Trebuchet

/// The code of Docs/Guides/HowTo.md behaves as the page says.
@Suite(.timeLimit(.minutes(5))) struct TaskExampleTests {
    private static let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    /// The token of the page, valid until 2100.
    private static let token = [
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJ0b2RvcyIsInN1YiI6ImFkYSIsInJvbGVzIjpbImVkaXRvciJdLCJleHAiOjQxMDI0NDQ4MDAsInRlYW0iOiJyZWQifQ",
        "_WCN6sGv7BE_aj7GzTtzS0sLkWe-YYkj_QN1aoV-oyY",
    ].joined(separator: ".")
    /// A token for another audience.
    private static let foreignToken = [
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJvdGhlcnMiLCJzdWIiOiJhZGEiLCJyb2xlcyI6WyJlZGl0b3IiXSwiZXhwIjo0MTAyNDQ0ODAwLCJ0ZWFtIjoicmVkIn0",
        "ZMXtmsrOXcgu94yyQOQRPlpwIPmL3GKI0ZlP7NMnYzk",
    ].joined(separator: ".")

    @Test("the page shows the code that is tested here")
    func page() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/Guides/HowTo.md"), encoding: .utf8)
        let source = try ["TaskExamples.swift", "TaskRightsExamples.swift"].map {
            try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
        }.joined()
        let blocks = page.matches(of: /(?s)```swift\n(.*?)```/).map(\.output.1)
        #expect(blocks.count > 6)
        for block in blocks { #expect(source.contains(block), "in none of them:\n\(block)") }
    }

    @Test("a client with the protocol only calls and observes")
    func resolvable() async throws {
        let server = try await serveTodos(port: 0)
        let client = TrebuchetClient(
            transport: .webSocket(host: "127.0.0.1", port: try #require(server.address?.port)))
        try await client.connect()
        #expect(try await addMilk(client) == ["Milk"])
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("only the key of a keeper opens the vault; every authenticated client may observe it")
    func keys() async throws {
        let server = try await serveWithKeys([
            "k-ada": Principal(id: "ada", roles: ["keeper"]), "k-bob": Principal(id: "bob"),
        ])
        let port = try #require(server.address?.port)
        let ada = try await connect(to: port, key: "k-ada")
        let vault = try ada.resolve(Vault.self, id: "vault")
        #expect(try await vault.open(guess: "swordfish"))
        #expect(try await !vault.open(guess: "tuna"))
        let bob = try await connect(to: port, key: "k-bob")
        let error = await #expect(throws: TrebuchetError.self) {
            _ = try await bob.resolve(Vault.self, id: "vault").open(guess: "swordfish")
        }
        #expect(error?.code == .unauthorized)
        for await visits in await (try bob.resolve(Vault.self, id: "vault")).observeVisits() {
            #expect(visits == 2)
            break
        }
        let refused = await #expect(throws: TransportError.self) { _ = try await connect(to: port, key: "k-eve") }
        #expect(refused?.message.contains("responded with 401") == true)
        #expect(refused?.message.hasSuffix(": unknown API key") == true)
        for client in [ada, bob] { await client.close() }
        await server.shutdown(drain: .zero)
    }

    @Test("changed authorization data applies to the next call")
    func rights() async throws {
        let rights = Rights()
        let keys = AccessPolicy.apiKeys(["k-ada": Principal(id: "ada", roles: ["keeper"])])
        let server = try await serveWithRights(AccessPolicy(authenticate: keys), rights)
        let ada = try await connect(to: try #require(server.address?.port), key: "k-ada")
        let vault = try ada.resolve(Vault.self, id: "vault")
        await #expect(throws: TrebuchetError.self) { try await vault.open(guess: "swordfish") }
        rights.change(["ada"], at: server)
        #expect(try await vault.open(guess: "swordfish"))
        rights.change([], at: server)
        await #expect(throws: TrebuchetError.self) { try await vault.open(guess: "swordfish") }
        await ada.close()
        await server.shutdown(drain: .zero)
    }

    @Test("without an access policy no client opens the vault; server code does")
    func nobody() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let vault = Vault(actorSystem: server.actorSystem)
        await server.expose(vault, as: "vault")
        let port = try await server.start().port
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        await #expect(throws: TrebuchetError.self) {
            _ = try await client.resolve(Vault.self, id: "vault").open(guess: "swordfish")
        }
        #expect(await vault.whenLocal { $0.isRight("swordfish") } == true)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the token of the page identifies the caller; a token for another audience is rejected")
    func tokens() async throws {
        let verifier = try JSONWebTokenVerifier(
            key: .hs256(Self.secret), audience: "todos", issuer: "https://id.example")
        let principal = try verifier.verify(Self.token)
        #expect(principal.id == "ada" && principal.roles == ["editor"] && principal.claims["team"] == "red")

        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: try tokenAccess(secret: Self.secret))
        await server.expose(TodoKeeper(actorSystem: server.actorSystem), as: "todos")
        let port = try await server.start().port
        let ada = try await connect(to: port, key: Self.token)
        #expect(try await addMilk(ada) == ["Milk"])
        await #expect(throws: TransportError.self) { _ = try await connect(to: port, key: Self.foreignToken) }
        await ada.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the sixth call in a row is rejected with a retry time; a client that waits succeeds")
    func limits() async throws {
        var limits = rates()
        let method = RatedMethod("add(title:)", of: TodoKeeper.self)
        #expect(limits.calls.rate.perMethod[method] == RateLimit(callsPerSecond: 2, burst: 5))
        // The same limit with a higher rate, so that the test waits only briefly.
        limits.calls.rate.perMethod[method] = RateLimit(callsPerSecond: 20, burst: 5)
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits)
        await server.expose(TodoKeeper(actorSystem: server.actorSystem), as: "todos")
        let client = TrebuchetClient(
            transport: .webSocket(host: "127.0.0.1", port: try await server.start().port))
        try await client.connect()
        let todos: some TodoService = try client.resolve($TodoService.self, id: "todos")
        var refusal: TrebuchetError?
        for _ in 0..<100 where refusal == nil {
            do { _ = try await todos.add(title: "x") } catch { refusal = error as? TrebuchetError }
        }
        #expect(refusal?.code == .rateLimited)
        #expect(refusal?.retryAfter.map { $0 > .zero && $0 <= .milliseconds(50) } == true)
        #expect(try await addPatiently("y", to: todos) > 5)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a subscriber of one player receives changes of that player only")
    func filters() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(Arena(actorSystem: server.actorSystem), as: "arena")
        let client = TrebuchetClient(
            transport: .webSocket(host: "127.0.0.1", port: try await server.start().port))
        try await client.connect()
        let arena = try client.resolve(Arena.self, id: "arena")
        var players = await watch("a/da", in: arena).makeAsyncIterator()
        #expect(await players.next() == .some(nil))
        try await arena.nextRound()
        try await arena.score("bob", points: 1)
        try await arena.score("a/da", points: 3)
        #expect(await players.next() == Arena.Player(score: 3))
        await client.close()
        await server.shutdown(drain: .zero)
    }
}
