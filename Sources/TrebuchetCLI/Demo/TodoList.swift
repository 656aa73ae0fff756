public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// One thing to do.
public struct TodoItem: Codable, Sendable, Identifiable, Equatable {
    public let id: UUID
    public var title: String
    public var isDone: Bool

    public init(title: String) {
        id = UUID()
        self.title = title
        isDone = false
    }
}

/// There is no item with this id.
public struct NoSuchTodo: Error, Codable, Sendable, Equatable {
    public let id: UUID
}

/// `todos`: a list that everybody shares, and that `serve --data` keeps.
@Trebuchet
public distributed actor TodoList {
    public struct State: Codable, Sendable {
        public var todos: [TodoItem] = []

        public init() {}
    }

    @StreamedState(persisted: true) public var state: State = State()

    @Idempotent
    public distributed func addTodo(title: String) -> TodoItem {
        let todo = TodoItem(title: title)
        state.todos.append(todo)
        return todo
    }

    public distributed func toggleTodo(id: UUID) throws(NoSuchTodo) -> TodoItem {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos[index].isDone.toggle()
        return state.todos[index]
    }

    public distributed func removeTodo(id: UUID) throws(NoSuchTodo) {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos.remove(at: index)
    }
}
