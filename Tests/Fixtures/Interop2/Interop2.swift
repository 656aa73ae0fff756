public import Foundation
public import Trebuchet

// The actors of another recorded exchange, with their names as they were.

public struct TodoItem: Codable, Sendable {
    public let id: UUID
    public var title: String
    public var isCompleted = false
    public let createdAt: Date
}

@Trebuchet
public distributed actor TodoList {
    public struct State: Codable, Sendable {
        public var todos: [TodoItem] = []
        public var pendingCount = 0
    }

    @StreamedState public var state = State()
    private var ids: [UUID]
    private let now: Date

    /// - Parameter ids: of the items, in the order in which they are made.
    public init(ids: [UUID], now: Date, actorSystem: TrebuchetActorSystem) {
        self.ids = ids
        self.now = now
        self.actorSystem = actorSystem
    }

    public distributed func addTodo(title: String) -> TodoItem {
        let item = TodoItem(id: ids.removeFirst(), title: title, createdAt: now)
        state.todos.append(item)
        count()
        return item
    }

    public distributed func getTodos() -> [TodoItem] { state.todos }

    public distributed func toggleTodo(id: UUID) -> TodoItem? {
        change(id) { $0.isCompleted.toggle() }
    }

    public distributed func updateTodo(id: UUID, title: String) -> TodoItem? {
        change(id) { $0.title = title }
    }

    public distributed func pendingCount() -> Int { state.pendingCount }

    public distributed func clearCompleted() -> Int {
        let before = state.todos.count
        state.todos.removeAll(where: \.isCompleted)
        return before - state.todos.count
    }

    public distributed func deleteTodo(id: UUID) -> Bool {
        let before = state.todos.count
        state.todos.removeAll { $0.id == id }
        count()
        return state.todos.count < before
    }

    private func change(_ id: UUID, _ change: (inout TodoItem) -> Void) -> TodoItem? {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { return nil }
        change(&state.todos[index])
        count()
        return state.todos[index]
    }

    private func count() { state.pendingCount = state.todos.count { !$0.isCompleted } }
}

/// Values of all kinds.
@Trebuchet
public distributed actor Ender {
    public struct State: Codable, Sendable { public var bumps = 0 }

    @StreamedState public var state = State()

    public distributed func opt(_ value: Int?) -> Int? { value }
    public distributed func when(_ value: Date) -> Date { value }
    public distributed func blob(_ value: Data) -> Data { value }
    public distributed func dbl(_ value: Double) -> Double { value }
    public distributed func gen<Value: Codable & Sendable>(_ value: Value) -> Value { value }
    public distributed func many(_ a: Int, b: String, c: [String: Double], d: Bool) -> String {
        "\(a) \(b) \(c["k"] ?? 0) \(d)"
    }

    public distributed func bump() -> Int {
        state.bumps += 1
        return state.bumps
    }
}
