import Observation
import TestSupport
import Testing
@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient
import TrebuchetTesting

/// A model as an app has it.
@MainActor @Observable private final class TodosModel {
    @ObservationIgnored @ObservedActor("todos", observe: \TodoList.observeState) var state
    /// An ordinary property of the model.
    var filter = ""

    init(_ client: TrebuchetClient? = nil) {
        _state = ObservedActor("todos", observe: \TodoList.observeState, client: client)
    }

    var count: Int? { state?.items.count }
}

@Suite(.timeLimit(.minutes(5))) @MainActor struct ObservedActorTests {
    private func withList(
        _ link: TestLink = .webSocket, _ body: (TodoList, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        } body: { client, server in
            try await body(client.resolve(TodoList.self, id: "todos"), client, server)
        }
    }

    /// Waits for a condition; evaluates it only when Observation reports a change.
    private func untilTrue(_ condition: @escaping @MainActor () -> Bool) async {
        for await isTrue in Observations({ condition() }) where isTrue { return }
    }

    @Test("a model has the newest value, and each change is observed", arguments: TestLink.allCases)
    func model(link: TestLink) async throws {
        try await withList(link) { list, client, _ in
            let model = TodosModel(client)
            #expect(model.state == nil)
            await untilTrue { model.count == 0 }
            for count in 1...5 {
                _ = try await list.add(title: "x")
                await untilTrue { model.count == count }
            }
            try await #expect(model.$state.actor?.add(title: "y") == 6)
            await untilTrue { model.state?.items.last == "y" }
        }
    }

    @Test("observers are notified on the main actor, after the change, and only of changes")
    func notification() async throws {
        try await withList { list, client, _ in
            let model = TodosModel(client)
            await untilTrue { model.count == 0 }
            let journal = Journal()
            withObservationTracking {
                _ = model.state
            } onChange: { [observer = model.$state] in
                MainActor.preconditionIsolated()
                journal.record("\(observer.value?.items ?? [])")
            }
            withObservationTracking {
                _ = model.$state.isConnecting
                _ = model.$state.error
                _ = model.filter
            } onChange: {
                journal.record("progress")
            }
            _ = try await list.add(title: "x")
            // A reader may see the change before its notification.
            await untilTrue { model.count == 1 && !journal.entries.isEmpty }
            #expect(journal.entries == [#"["x"]"#])
        }
    }

    @Test("the connection phases are published: connecting, then a value, and no error")
    func connecting() async throws {
        try await withList { list, connected, server in
            let address = try #require(server.address)
            // Not connected: the observer connects it.
            let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
            let model = TodosModel(client)
            #expect(client.connectionState.currentValue == .disconnected(nil))
            #expect(model.$state.isConnecting)
            #expect(model.$state.error == nil)
            await untilTrue { model.state != nil }
            #expect(!model.$state.isConnecting)
            #expect(model.$state.error == nil)
            #expect(model.$state.connectionState == .connected)
            await client.close()
            await untilTrue { model.$state.error != nil }
            #expect(model.$state.connectionState == .closed)
            #expect(!model.$state.isConnecting)
            #expect(model.count == 0, "the value stays")
        }
    }

    @Test("the observer contacts the server at its first use; its subscription ends with the model")
    func lifetime() async throws {
        try await withList { list, client, server in
            var model: TodosModel? = TodosModel(client)
            _ = try await list.add(title: "x")
            #expect(await server.subscriberCount(of: "todos", "observeState") == 0)
            await untilTrue { [model] in model?.count == 1 }
            #expect(await server.subscriberCount(of: "todos", "observeState") == 1)
            model = nil
            #expect(await eventually { await server.subscriberCount(of: "todos", "observeState") == 0 })
        }
    }

    @Test("an observer that is released while it connects releases its client")
    func lifetimeOfClient() async throws {
        // No server listens there, and the client keeps trying.
        var options = TrebuchetClient.Options()
        options.reconnect.retriesFirstConnection = true
        weak var observed: TrebuchetClient?
        do {
            let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: 1), options: options)
            observed = client
            let model = TodosModel(client)
            await untilTrue { if case .connecting(2..., _) = model.$state.connectionState { true } else { false } }
        }
        #expect(await eventually { observed == nil })
    }

    @Test("after actorNotFound there is an error, and retry() finds the actor that was exposed since")
    func retry() async throws {
        try await withTestServer { _ in
        } body: { client, server in
            let model = TodosModel(client)
            await untilTrue { model.$state.error != nil }
            #expect(model.$state.error?.code == .actorNotFound)
            #expect(!model.$state.isConnecting)
            #expect(model.$state.connectionState == .connected)
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
            model.$state.retry()
            #expect(model.$state.error == nil)
            #expect(model.$state.isConnecting)
            await untilTrue { model.count == 0 }
            model.$state.retry()
            #expect(!model.$state.isConnecting, "no attempt can be retried")
            #expect(await server.subscriberCount(of: "todos", "observeState") == 1)
        }
    }

    @Test("when the actor ends, the last value stays, with an error")
    func actorEnd() async throws {
        try await withTestServer { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        } body: { client, server in
            let model = TodosModel(client)
            await untilTrue { model.state != nil }
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "todos")
            await untilTrue { model.$state.error != nil }
            #expect(model.$state.error?.code == .actorNotFound)
            #expect(model.count == 0)
            model.$state.retry()
            await untilTrue { model.$state.error?.code == .methodNotFound }
        }
    }

    @Test("a burst of 10,000 changes shows the last one, and never an older one after a newer one")
    func burst() async throws {
        try await withTestServer { server in
            await server.expose(Thermometer(0, actorSystem: server.actorSystem), as: "outside")
        } body: { client, _ in
            @ObservedActor("outside", observe: \Thermometer.observeDegrees, client: client) var degrees
            let observer = $degrees
            await untilTrue { observer.value == 0 }
            let reader = Task {
                var seen: [Double] = []
                for await degrees in Observations({ observer.value }) {
                    seen.append(degrees ?? -1)
                    if degrees == 10_000 { break }
                }
                return seen
            }
            let thermometer = try #require($degrees.actor)
            await Task.detached {
                await withDiscardingTaskGroup { group in
                    for _ in 0..<10 {
                        group.addTask { for _ in 0..<1_000 { try? await thermometer.warm(by: 1) } }
                    }
                }
            }.value
            let seen = await reader.value
            #expect(seen.last == 10_000)
            #expect(zip(seen, seen.dropFirst()).allSatisfy(<=))
        }
    }

    @Test("an actor in this process is observed the same way, without a client, and retained")
    func local() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        weak var list: TodoList?
        do {
            let made = TodoList(actorSystem: server.actorSystem)
            list = made
            @ObservedActor(made, observe: \.observeState) var state
            #expect($state.connectionState == .connected)
            #expect($state.isConnecting)
            let observer = $state
            await untilTrue { observer.value?.items == [] }
            _ = try await $state.actor?.add(title: "x")
            await untilTrue { observer.value?.items == ["x"] }
            #expect(!observer.isConnecting)
        }
        #expect(await eventually { list == nil })
    }

    @Test("a reference to a remote actor is observed through its own client")
    func reference() async throws {
        try await withList { list, client, server in
            @ObservedActor(list, observe: \.observeState) var state
            let observer = $state
            await untilTrue { observer.value != nil }
            #expect(await server.subscriberCount(of: "todos", "observeState") == 1)
            await client.close()
            await untilTrue { observer.error != nil }
            #expect(observer.connectionState == .closed)
        }
    }

    @Test("without a client there is a clear error; an explicit or default client may be set and replaced later")
    func clients() async throws {
        try await withList { _, first, firstServer in
            try await withList { list, second, secondServer in
                _ = try await list.add(title: "at the second")
                let model = TodosModel()
                let given = TodosModel()
                #expect(model.$state.error?.code == .unavailable)
                #expect(!model.$state.isConnecting)
                #expect(model.$state.actor == nil)
                #expect(model.$state.connectionState == .disconnected(nil))
                given.$state.connect(second)
                #expect(given.$state.isConnecting)
                let waiting = Task { await untilTrue { model.state != nil } }
                TrebuchetClient.default = first
                await waiting.value
                #expect(model.$state.error == nil)
                #expect(model.count == 0)
                await untilTrue { given.count == 1 }
                TrebuchetClient.default = nil
                // The environment's client takes precedence over the default, and the user's explicit client over both.
                model.$state.setClient(second, .environment)
                #expect(model.state == nil)
                await untilTrue { model.count == 1 }
                model.$state.connect(first)
                model.$state.setClient(second, .environment)
                await untilTrue { model.count == 0 }
                #expect(await firstServer.subscriberCount(of: "todos", "observeState") == 1)
                #expect(await eventually { await secondServer.subscriberCount(of: "todos", "observeState") == 1 })
            }
        }
    }

    @Test("observers are equal when their names, states and clients are equal")
    func sameness() throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let (first, second) = (TrebuchetClient(transport: .local(server)), TrebuchetClient(transport: .local(server)))
        typealias Observer = ActorObserver<TodoList, ListState>
        let observer = Observer("todos", \.observeState, client: first)
        #expect(observer.observesTheSame(as: Observer("todos", \.observeState, client: first)))
        #expect(!observer.observesTheSame(as: Observer("others", \.observeState, client: first)))
        #expect(!observer.observesTheSame(as: Observer("todos", \.observeState, client: second)))
        #expect(!observer.observesTheSame(as: Observer("todos", \.observeState, client: nil)))
        #expect(!observer.observesTheSame(as: Observer("todos", \.observeOther, client: first)))
        #expect(observer.observesTheSame(as: Observer(try first.resolve(TodoList.self, id: "todos"), \.observeState)))
    }
}

extension TodoList {
    fileprivate nonisolated var observeOther: StateObservation<TodoList, ListState> { observation("observeOther") }
}
