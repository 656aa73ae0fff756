import Foundation
import Trebuchet

/// An item of the list.
struct Todo: Codable, Sendable, Identifiable {
    var id = UUID()
    var title: String
    var isDone = false
}

/// The item does not exist, or was removed.
struct NoSuchTodo: Error, Codable, Sendable {
    var id: UUID
}

/// A list that all visitors of the page share.
@Trebuchet
distributed actor Todos {
    struct State: Codable, Sendable { var todos: [Todo] = [] }
    @StreamedState(persisted: true) var state: State = State()

    /// Appends an item.
    @Idempotent
    distributed func addTodo(title: String) -> Todo {
        let todo = Todo(title: title)
        state.todos.append(todo)
        return todo
    }

    distributed func toggleTodo(id: UUID) throws(NoSuchTodo) -> Todo {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos[index].isDone.toggle()
        return state.todos[index]
    }

    distributed func removeTodo(id: UUID) throws(NoSuchTodo) {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos.remove(at: index)
    }
}
