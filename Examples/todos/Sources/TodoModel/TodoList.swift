public import Foundation
public import TrebuchetClient

/// One thing to do.
public struct Todo: Codable, Sendable, Identifiable {
    public var id = UUID()
    public var title: String
    public var isDone = false
}

/// There is no such thing to do.
public struct NoSuchTodo: Error, Codable, Sendable {
    public var number: Int
}

/// A list that all clients share.
@Trebuchet
public distributed actor TodoList {
    public struct State: Codable, Sendable { public var todos: [Todo] = [] }
    @StreamedState(persisted: true) public var state: State = State()

    public init(actorSystem: TrebuchetActorSystem) { self.actorSystem = actorSystem }

    /// Adds one at the end. A call that is repeated over a new connection is not done twice.
    @Idempotent
    public distributed func add(title: String) {
        state.todos.append(Todo(title: title))
    }

    /// Ticks off the one that stands at a place in the list, counted from 1.
    public distributed func finish(number: Int) throws(NoSuchTodo) {
        guard state.todos.indices.contains(number - 1) else { throw NoSuchTodo(number: number) }
        state.todos[number - 1].isDone = true
    }
}
