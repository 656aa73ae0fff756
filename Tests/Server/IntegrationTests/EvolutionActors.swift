import Trebuchet

// Three versions of one app, as in the guide "Evolution".

/// The first version of an app and its server.
enum Version1 {
    enum Priority: String, Codable, Sendable { case low, high }

    struct Todo: Codable, Sendable {
        var title: String
        var priority: Tolerant<Priority>
    }

    enum Change: String, Codable, Sendable { case added }

    @Trebuchet
    distributed actor TodoList {
        @StreamedState(persisted: true) var todos: [Todo] = []
        @StreamedEvents(persisted: true) var changes: Tolerant<Change>

        distributed func addTodo(title: String) {
            todos.append(Todo(title: title, priority: .known(.low)))
            $changes.send(.known(.added))
        }

        distributed func replaceTodos(_ todos: [Todo]) { self.todos = todos }
    }
}

/// It renames `title` to `text` and replaces a method, with the old names beside the new ones. It adds a member, a priority and
/// a change.
enum Version2 {
    enum Priority: String, Codable, Sendable { case low, high, urgent }

    struct Todo: Codable, Sendable {
        @available(*, deprecated, message: "use 'text'") var title: String?
        var text: String?
        var priority: Tolerant<Priority>
        var note: String?
    }

    enum Change: String, Codable, Sendable { case added, replaced }

    @Trebuchet
    distributed actor TodoList {
        @StreamedState(
            persisted: true, version: 2,
            migrate: { todos, _ in
                todos.mutateEach { $0["text"] = $0["title"] }
            }) var todos: [Todo] = []
        @StreamedEvents(persisted: true) var changes: Tolerant<Change>

        @available(*, deprecated, message: "use add(text:priority:)")
        distributed func addTodo(title: String) { add(text: title, priority: .low) }

        distributed func add(text: String, priority: Priority) {
            todos.append(Todo(title: text, text: text, priority: .known(priority)))
            $changes.send(.known(.added))
        }

        distributed func replaceTodos(_ todos: [Todo]) {
            self.todos = todos
            $changes.send(.known(.replaced))
        }
    }
}

/// It removes the old names, after all apps have the second version.
enum Version3 {
    enum Priority: String, Codable, Sendable { case low, high, urgent }

    struct Todo: Codable, Sendable {
        var text: String
        var priority: Tolerant<Priority>
        var note: String?
    }

    enum Change: String, Codable, Sendable { case added, replaced }

    @Trebuchet
    distributed actor TodoList {
        @StreamedState(
            persisted: true, version: 3,
            migrate: { todos, from in
                todos.mutateEach { todo in
                    if from < 2 { todo["text"] = todo["title"] }
                    todo["title"] = nil
                }
            }) var todos: [Todo] = []
        @StreamedEvents(persisted: true) var changes: Tolerant<Change>

        distributed func add(text: String, priority: Priority) {
            todos.append(Todo(text: text, priority: .known(priority)))
            $changes.send(.known(.added))
        }

        distributed func replaceTodos(_ todos: [Todo]) { self.todos = todos }
    }
}
