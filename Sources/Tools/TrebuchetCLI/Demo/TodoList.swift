public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// One item of a to-do list.
public struct TodoItem: Codable, Sendable, Identifiable, Equatable {
    /// The identifier of the item.
    public let id: UUID
    /// The text of the item.
    public var title: String
    /// Whether the item is done.
    public var isDone: Bool

    /// Creates an open item with a new id.
    public init(title: String) {
        id = UUID()
        self.title = title
        isDone = false
    }
}

/// The error for an unknown item id.
public struct NoSuchTodo: Error, Codable, Sendable, Equatable {
    /// The unknown id.
    public let id: UUID
}

/// `todos`: a list that all clients share; `serve --examples --data` persists it.
@Trebuchet
public distributed actor TodoList {
    /// The state that clients observe.
    public struct State: Codable, Sendable {
        /// The items, in the order of their creation.
        public var todos: [TodoItem] = []

        /// Creates an empty list.
        public init() {}
    }

    /// The observed and persisted state.
    @StreamedState(persisted: true) public var state: State = State()

    /// Adds an item and returns it. There are at most 1,000 items, whose titles have 1 to 128 bytes.
    @Idempotent
    public distributed func addTodo(title: String) throws -> TodoItem {
        try ExampleActors.checkName(title, "title")
        try ExampleActors.checkRoom(state.todos.count, "items", toMakeRoom: "remove one with removeTodo(id:)")
        let todo = TodoItem(title: title)
        state.todos.append(todo)
        return todo
    }

    /// Toggles whether an item is done and returns it.
    public distributed func toggleTodo(id: UUID) throws(NoSuchTodo) -> TodoItem {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos[index].isDone.toggle()
        return state.todos[index]
    }

    /// Removes an item.
    public distributed func removeTodo(id: UUID) throws(NoSuchTodo) {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos.remove(at: index)
    }
}
