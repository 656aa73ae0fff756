import Observation
import Testing
import Trebuchet

/// The content of the guide's views, in a model.
@MainActor @Observable private final class GameModel {
    @ObservationIgnored @ObservedActor("game", observe: \GameServer.observeGameState)
    var gameState

    /// The output of the guide's view.
    var body: [String] {
        if let state = gameState {
            ["Score: \(state.score)", "Level: \(state.level)"]
        } else if $gameState.isConnecting {
            ["Connecting..."]
        } else {
            []
        }
    }

    init(client: TrebuchetClient) { $gameState.connect(client) }
}

/// One list of many, whose name is known at run time.
@MainActor @Observable private final class ListModel {
    @ObservationIgnored @ObservedActor<TodoList, TodoList.State> var state: TodoList.State?

    init(list id: String, client: TrebuchetClient) {
        _state = ObservedActor(id, observe: \TodoList.observeState, client: client)
    }
}

/// The guide's property wrapper, outside of views.
@Suite(.timeLimit(.minutes(5))) @MainActor struct ObservedActorExamples {
    private func withGame(_ body: (TrebuchetClient) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "localhost", port: 0))
        await server.expose(GameServer(actorSystem: server.actorSystem), as: "game")
        await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        let port = try await server.start().port
        let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: port))
        try await body(client)
        await client.close()
        await server.shutdown()
    }

    @Test("a model shows the game, and each next level of it")
    func model() async throws {
        try await withGame { client in
            let model = GameModel(client: client)
            var shown: [[String]] = []
            for await body in Observations({ model.body }) where body != shown.last {
                shown.append(body)
                if body.contains("Level: 3") { break }
                try await model.$gameState.actor?.advanceLevel()
            }
            #expect(shown.first == ["Connecting..."])
            #expect(shown.last == ["Score: 0", "Level: 3"])
            #expect(model.$gameState.error == nil)
            #expect(model.$gameState.connectionState == .connected)
        }
    }

    @Test("a model observes an actor by a given name")
    func nameAtRunTime() async throws {
        try await withGame { client in
            let model = ListModel(list: ["to", "dos"].joined(), client: client)
            for await count in Observations({ model.state?.todos.count }) {
                guard let count else { continue }
                if count == 1 { break }
                _ = try await model.$state.actor?.addTodo(title: "Milk")
            }
            #expect(model.state?.todos.first?.title == "Milk")
        }
    }

    @Test("a program in a terminal prints the todos as they are added")
    func program() async throws {
        try await withGame { client in
            @ObservedActor("todos", observe: \TodoList.observeState, client: client) var state

            var lines: [String] = []
            for await todos in Observations({ [observer = $state] in observer.value?.todos }) {
                guard let todos else { continue }
                lines.append("\(todos.count) todos")
                if todos.count == 2 { break }
                _ = try await $state.actor?.addTodo(title: "Milk")
            }
            #expect(lines.last == "2 todos")
        }
    }
}
