import Foundation
import Trebuchet
import TrebuchetStore

// TodosWeb [PORT [FILE]]: serves the list and its page until Control-C.
let port = CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) } ?? 8080
let file = CommandLine.arguments.dropFirst(2).first ?? "todos.db"

do {
    let store = try await SQLiteStore.waitUntilAvailable(path: file)
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port), store: store)
    server.servePages(try .folder("public"), .clientLibrary)
    let todos = Todos(actorSystem: server.actorSystem)
    await server.expose(todos, as: "todos")
    print("http://\(try await server.start())")
    fflush(nil)  // Output to a pipe is buffered.
    try await server.run()
    await store.close()
} catch {  // the port is in use, or the folder is missing
    FileHandle.standardError.write(Data("todos: \(error)\n".utf8))
    exit(1)
}
