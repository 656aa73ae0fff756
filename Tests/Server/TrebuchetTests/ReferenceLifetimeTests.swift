import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The requirements of a reference: a connected client, and a peer that knows the actor.
@Suite(.timeLimit(.minutes(5))) struct ReferenceLifetimeTests {
    /// A server for short-lived clients.
    private struct Scene {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let transport: TrebuchetTransport

        init(link: TestLink = .webSocket) async throws {
            await server.expose(Registry(actorSystem: server.actorSystem), as: "registry")
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
            let address = try await server.start()
            transport = link == .local ? .local(server) : .webSocket(host: address.host, port: address.port)
        }

        func client() async throws -> TrebuchetClient {
            let client = TrebuchetClient(transport: transport)
            try await client.connect()
            return client
        }

        /// References that alone retain their client.
        func todos() async throws -> TodoList { try await client().resolve(TodoList.self, id: "todos") }
        func registry() async throws -> Registry { try await client().resolve(Registry.self, id: "registry") }

        var isLeft: Bool { get async { await eventually { await server.connectionCount == 0 } } }
    }

    @Test("a reference keeps its client connected, and releases it at its end", arguments: TestLink.allCases)
    func reference(link: TestLink) async throws {
        let scene = try await Scene(link: link)
        weak var system: TrebuchetActorSystem?
        do {
            let todos = try await scene.todos()
            system = todos.actorSystem
            #expect(try await todos.add(title: "a") == 1)
            #expect(try await todos.add(title: "b") == 2)
            #expect(await scene.server.connectionCount == 1)
        }
        #expect(await scene.isLeft)
        #expect(await eventually { system == nil }, "the client is freed")
        await scene.server.shutdown(drain: .zero)
    }

    @Test("a reference that came with a result retains the client too", arguments: TestLink.allCases)
    func returned(link: TestLink) async throws {
        let scene = try await Scene(link: link)
        do {
            let list = try await scene.registry().make()
            #expect(try await list.add(title: "a") == 1)
            #expect(await scene.server.connectionCount == 1)
        }
        #expect(await scene.isLeft)
        await scene.server.shutdown(drain: .zero)
    }

    @Test("a stream retains the client of its reference", arguments: TestLink.allCases)
    func stream(link: TestLink) async throws {
        let scene = try await Scene(link: link)
        do {
            var states = try await scene.todos().observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            _ = try await scene.todos().add(title: "a")
            #expect(await states.next()?.items == ["a"])
        }
        #expect(await scene.isLeft)
        await scene.server.shutdown(drain: .zero)
    }

    @Test("a reference made without its client reports that the client was released")
    func bare() async throws {
        let scene = try await Scene()
        let todos = try TodoList.resolve(
            id: TrebuchetActorID("todos"), using: await scene.client().actorSystem)
        #expect(await scene.isLeft)
        let error = await #expect(throws: TrebuchetError.self) { _ = try await todos.add(title: "a") }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("client.resolve") == true, "\(error?.message ?? "")")
        let stream = await todos.observeState()
        for await _ in stream { Issue.record("the stream has no client") }
        #expect(stream.outcome != nil)
        await scene.server.shutdown(drain: .zero)
    }

    @Test(
        "a reference to an actor of another server is not sent, and the error gives the reason",
        arguments: TestLink.allCases)
    func otherServer(link: TestLink) async throws {
        let (here, there) = (try await Scene(link: link), try await Scene(link: link))
        let registry = try await here.registry()
        _ = try await registry.make()
        let theirs = try await there.todos()
        try await theirs.fill(0)
        for foreign in [theirs, TodoList(actorSystem: there.server.actorSystem)] {
            let error = await #expect(throws: TrebuchetError.self) { _ = try await registry.fill(foreign, title: "a") }
            #expect(error?.code == .invalidArguments)
            #expect(error?.message.contains("is not valid elsewhere") == true, "\(error?.message ?? "")")
        }
        // The local actor under the same name continues to work.
        #expect(try await registry.fill(here.todos(), title: "a") == 1)
        for scene in [here, there] { await scene.server.shutdown(drain: .zero) }
    }

    @Test("a server does not return a reference to an actor of another server")
    func otherServerReturned() async throws {
        let (here, there) = (try await Scene(), try await Scene())
        let relay = GatewayActor(at: try await there.client(), actorSystem: here.server.actorSystem)
        await here.server.expose(relay, as: "relay")
        let reference = try await here.client().resolve(GatewayActor.self, id: "relay")
        try await reference.call()
        let error = await #expect(throws: TrebuchetError.self) { _ = try await reference.list() }
        #expect(error?.code == .internal)
        #expect(error?.message.contains("is not valid elsewhere") == true, "\(error?.message ?? "")")
        for scene in [here, there] { await scene.server.shutdown(drain: .zero) }
    }

    @Test("a server accepts references to its own actors from any client connected to it")
    func sameServer() async throws {
        let scene = try await Scene()
        let address = try #require(scene.server.address)
        let link = try FaultyLink(to: address, seed: 1)
        let detour = TrebuchetClient(transport: .webSocket(host: link.address.host, port: link.address.port))
        try await detour.connect()
        let local = TrebuchetClient(transport: .local(scene.server))
        try await local.connect()
        let registry = try await scene.registry()
        var count = 0
        for client in [detour, local] {
            let list = try client.resolve(TodoList.self, id: "todos")
            try await list.fill(0)
            count += 1
            #expect(try await registry.fill(list, title: "x") == count)
        }
        // An actor of this server, sent by a client in the same process.
        let own = TodoList(actorSystem: scene.server.actorSystem)
        #expect(try await registry.fill(own, title: "x") == 1)
        for client in [detour, local] { await client.close() }
        await link.close()
        await scene.server.shutdown(drain: .zero)
    }

    @Test("an actor that lives in a client is not sent over another client", arguments: TestLink.allCases)
    func inAnotherClient(link: TestLink) async throws {
        let scene = try await Scene(link: link)
        let (client, other) = (try await scene.client(), try await scene.client())
        let registry = try client.resolve(Registry.self, id: "registry")
        let theirs = TodoList(actorSystem: other.actorSystem)
        let error = await #expect(throws: TrebuchetError.self) { _ = try await registry.fill(theirs, title: "a") }
        #expect(error?.code == .invalidArguments)
        #expect(error?.message.contains("lives in another client") == true, "\(error?.message ?? "")")
        let own = TodoList(actorSystem: client.actorSystem)
        #expect(try await registry.fill(own, title: "a") == 1)
        await scene.server.shutdown(drain: .zero)
    }
}

/// An actor of a server that is a client of another one.
@Trebuchet
distributed actor GatewayActor {
    private let client: TrebuchetClient

    init(at client: TrebuchetClient, actorSystem: TrebuchetActorSystem) {
        self.client = client
        self.actorSystem = actorSystem
    }

    distributed func list() throws -> TodoList { try client.resolve(TodoList.self, id: "todos") }
    distributed func call() async throws { try await client.resolve(TodoList.self, id: "todos").fill(0) }
}
