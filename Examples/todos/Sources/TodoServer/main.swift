import Foundation
import TodoModel
import Trebuchet
import TrebuchetStore

// TodoServer [PORT [FILE]]: serves the list, until Control-C.
let port = CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) } ?? 8080
let file = CommandLine.arguments.dropFirst(2).first ?? "todos.db"

do {
    let store = try SQLiteStore(path: file)
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port), store: store)
    let list = TodoList(actorSystem: server.actorSystem)
    await server.expose(list, as: "todos")
    print("serves todos on port \(try await server.start().port)")
    fflush(nil)  // Print immediately, even into a pipe.
    try await server.run()
    await store.close()
} catch {  // a port that is in use, a file that another server uses
    FileHandle.standardError.write(Data("TodoServer: \(error)\n".utf8))
    exit(1)
}
