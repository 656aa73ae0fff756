import Desk
import Foundation
import KitchenModel
import Observation
import SharedState
import Trebuchet

// Kitchen [FILE]: a kitchen and a desk in one process. FILE stores the desk's settings. Reads commands until `quit`.
let file =
    CommandLine.arguments.dropFirst().first.map { URL(fileURLWithPath: $0) }
    ?? FileManager.default.temporaryDirectory.appending(path: "desk.json")
FileHandle.standardOutput.write(Data("settings: \(file.path)\n\n".utf8))

let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
await server.expose(Kitchen(actorSystem: server.actorSystem), as: "kitchen")
let client = TrebuchetClient(transport: .local(server))
let settings = Shared(wrappedValue: Settings(), .fileStorage(file))
let desk = try Desk(client: client, settings: settings, search: await Search())
let work = Task { await desk.run() }

/// Runs the command of a line. Returns false for `quit`.
@MainActor func follow(_ line: String) async throws -> Bool {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    let rest = words.dropFirst().first ?? ""
    switch words.first {
    case "quit": return false
    case "find": await desk.search.text.set(rest)
    case "order": desk.order(rest)
    case "serve": try await desk.serve(Int(rest) ?? 0)
    case "table": settings.withLock { $0.table = Int(rest) ?? $0.table }
    default: print("find TEXT, order DISH, serve NUMBER, table NUMBER, quit")
    }
    return true
}

let drawing = Task {
    var shown: [String] = []
    for await lines in Observations({ desk.body }) where lines != shown {
        shown = lines
        // Unbuffered, also in a pipe. `fflush(nil)` would block on the thread that reads lines.
        FileHandle.standardOutput.write(Data((lines.joined(separator: "\n") + "\n\n").utf8))
    }
}
let lines = AsyncStream<String> { continuation in
    // Reading a line blocks, so it runs on a dedicated thread.
    Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
    }
}
for await line in lines {
    guard try await follow(line) else { break }
}
try await settings.save()
drawing.cancel()
work.cancel()
await client.close()
