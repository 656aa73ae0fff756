public import Foundation
public import TrebuchetClient

/// One item of the list.
public struct Todo: Codable, Sendable, Identifiable {
    public var id = UUID()
    public var title: String
    public var isDone = false
}

/// The error for a number without an item.
public struct NoSuchTodo: Error, Codable, Sendable {
    public var number: Int
}

/// A list that all clients share.
@Trebuchet
public distributed actor TodoList {
    /// The state that clients observe.
    public struct State: Codable, Sendable { public var todos: [Todo] = [] }
    @StreamedState(persisted: true) public var state: State = State()

    public init(actorSystem: TrebuchetActorSystem) { self.actorSystem = actorSystem }

    /// Appends an item. A call that is repeated over a new connection is executed once.
    @Idempotent
    public distributed func add(title: String) {
        state.todos.append(Todo(title: title))
    }

    /// Marks the item at a position as done, counted from 1.
    public distributed func finish(number: Int) throws(NoSuchTodo) {
        guard state.todos.indices.contains(number - 1) else { throw NoSuchTodo(number: number) }
        state.todos[number - 1].isDone = true
    }
}
