import Foundation
import TodoModel
import Trebuchet

// TodoClient [--port PORT] add TITLE | done NUMBER | watch
var words = Array(CommandLine.arguments.dropFirst())
var port: UInt16 = 8080
if words.first == "--port", words.count > 1, let number = UInt16(words[1]) {
    port = number
    words.removeFirst(2)
}

do {
    let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
    try await client.connect()
    let list = try client.resolve(TodoList.self, id: "todos")
    switch words.first {
    case "add" where words.count > 1:
        try await list.add(title: words.dropFirst().joined(separator: " "))
    case "done" where words.count == 2:
        try await list.finish(number: Int(words[1]) ?? 0)
    case "watch":
        // Prints the current list first, and then each change, also after an interruption of the connection.
        for await state in await list.observeState() {
            print(state.todos.isEmpty ? "nothing to do" : "to do:")
            for (number, todo) in zip(1..., state.todos) {
                print("\(number). [\(todo.isDone ? "x" : " ")] \(todo.title)")
            }
            fflush(nil)  // Print immediately, even into a pipe.
        }
    default:
        print("usage: TodoClient [--port PORT] add TITLE | done NUMBER | watch")
    }
    await client.close()
} catch let error as NoSuchTodo {  // thrown by the actor, in the server
    FileHandle.standardError.write(Data("TodoClient: there is no number \(error.number)\n".utf8))
    exit(1)
} catch {  // no server at the address
    FileHandle.standardError.write(Data("TodoClient: \(error)\n".utf8))
    exit(1)
}
