import Foundation
import Trebuchet
import TrebuchetStore

// ChatWeb [PORT [FILE]]: the room and its page, until Control-C.
let port = CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) } ?? 8080
let file = CommandLine.arguments.dropFirst(2).first ?? "chat.db"

do {
    // So that the room knows over which connection somebody came.
    var access = AccessPolicy()
    access.identifiesCallers = true

    let store = try await SQLiteStore.whenFree(path: file)
    let server = TrebuchetServer(
        transport: .webSocket(host: "127.0.0.1", port: port), access: access, store: store)
    server.pages(try .folder("public"), .clientLibrary)
    let chat = Chat(actorSystem: server.actorSystem)
    await server.expose(chat, as: "chat")
    print("http://\(try await server.start())")
    fflush(nil)  // Seen at once, in a pipe too.
    try await server.run()
    await store.close()
} catch {  // a port that is taken, a folder that is not there
    FileHandle.standardError.write(Data("chat: \(error)\n".utf8))
    exit(1)
}
