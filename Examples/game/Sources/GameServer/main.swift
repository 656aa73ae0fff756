import Foundation
import GameModel
import Trebuchet

// GameServer [PORT [MILLISECONDS]]: matches, until Control-C. A tick takes so long.
let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
let port = UInt16(clamping: numbers.first ?? 8080)
let tick = Duration.milliseconds(numbers.dropFirst().first ?? 250)

do {
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port))
    let system = server.actorSystem
    server.expose(Match.self, as: "matches/*", idle: .seconds(60)) { _ in Match(tick: tick, actorSystem: system) }
    print("serves matches on port \(try await server.start().port)")
    fflush(nil)  // Seen at once, in a pipe too.
    try await server.run()
} catch {  // a port that is taken
    FileHandle.standardError.write(Data("GameServer: \(error)\n".utf8))
    exit(1)
}
