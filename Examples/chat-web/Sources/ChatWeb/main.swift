import Foundation
import Trebuchet
import TrebuchetStore

// ChatWeb [PORT [FILE]]: serves the room and its page until Control-C.
let port = CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) } ?? 8080
let file = CommandLine.arguments.dropFirst(2).first ?? "chat.db"

do {
    // Without it `Caller.current` is nil.
    var access = AccessPolicy()
    access.identifiesCallers = true

    let store = try await SQLiteStore.waitUntilAvailable(path: file)
    let server = TrebuchetServer(
        transport: .webSocket(host: "127.0.0.1", port: port), access: access, store: store)
    server.servePages(try .folder("public"), .clientLibrary)
    let chat = Chat(actorSystem: server.actorSystem)
    await server.expose(chat, as: "chat")
    print("http://\(try await server.start())")
    fflush(nil)  // Output to a pipe is buffered.
    try await server.run()
    await store.close()
} catch {  // the port is in use, or the folder is missing
    FileHandle.standardError.write(Data("chat: \(error)\n".utf8))
    exit(1)
}
