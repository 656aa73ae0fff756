public import Foundation
public import Trebuchet

// The actors of a recorded exchange. Its messages have the mangled names of their methods, so names, types and the module's own
// name stand as they were.

@Trebuchet
public distributed actor Counter {
    public struct State: Codable, Sendable { public var count = 0 }

    @StreamedState public var state = State()

    public distributed func reset() { state.count = 0 }
    public distributed func increment() -> Int { add(1) }
    public distributed func add(_ amount: Int) -> Int {
        state.count += amount
        return state.count
    }
}

@Trebuchet
public distributed actor GameServer {
    public struct GameState: Codable, Sendable {
        public var players: [String] = []
        public var level = 1
    }

    public struct Metrics: Codable, Sendable { public var joined = 0 }

    @StreamedState public var gameState = GameState()
    @StreamedState public var metrics = Metrics()

    public distributed func join(player: String) -> [String] {
        gameState.players.append(player)
        metrics.joined += 1
        return gameState.players
    }

    public distributed func advanceLevel() -> Int {
        gameState.level += 1
        return gameState.level
    }
}

public struct TodoItem: Codable, Sendable {
    public let id: UUID
    public var title: String
    public var isCompleted = false
}

public struct NoSuchTodo: Error, Codable { public let id: UUID }

@Trebuchet
public distributed actor TodoList {
    public struct State: Codable, Sendable { public var todos: [TodoItem] = [] }

    @StreamedState public var state = State()
    private var ids: [UUID]

    /// - Parameter ids: of the items, in the order in which they are made.
    public init(ids: [UUID], actorSystem: TrebuchetActorSystem) {
        self.ids = ids
        self.actorSystem = actorSystem
    }

    public distributed func addTodo(title: String) -> TodoItem {
        let item = TodoItem(id: ids.removeFirst(), title: title)
        state.todos.append(item)
        return item
    }

    public distributed func toggleTodo(id: UUID) throws -> TodoItem {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos[index].isCompleted.toggle()
        return state.todos[index]
    }

    public distributed func removeTodo(id: UUID) throws {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos.remove(at: index)
    }
}
