import Trebuchet

// The actors of the streaming guide, verbatim; code that the guide omits (items, states) is at the end.

@Trebuchet
public distributed actor TodoList {
    public struct State: Codable, Sendable { public var todos: [TodoItem] = [] }
    @StreamedState public var state: State = State()

    public distributed func addTodo(title: String) -> TodoItem {
        let todo = TodoItem(title: title)
        state.todos.append(todo)  // Automatically notifies all subscribers
        return todo
    }
}

@Trebuchet
public distributed actor Counter {
    public struct State: Codable, Sendable {
        public var count: Int
    }

    @StreamedState public var state: State = State(count: 0)

    public distributed func increment() {
        state.count += 1  // All subscribers receive update
    }
}

@Trebuchet
public distributed actor GameServer {
    @StreamedState public var gameState: GameState = GameState()
    @StreamedState public var metrics: Metrics = Metrics()

    // Macro generates:
    // - observeGameState() -> AsyncStream<GameState>
    // - observeMetrics() -> AsyncStream<Metrics>

    public distributed func advanceLevel() {
        gameState.level += 1
        metrics.levels += 1
    }
}

public struct TodoItem: Codable, Sendable, Equatable {
    public var title: String
}

public struct GameState: Codable, Sendable {
    public var score = 0
    public var level = 1
}

public struct Metrics: Codable, Sendable {
    public var levels = 0
}
