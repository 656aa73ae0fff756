import Foundation
import GameModel
import Trebuchet

// GameServer [PORT [MILLISECONDS]]: serves matches with the given tick, until Control-C.
let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
let port = UInt16(clamping: numbers.first ?? 8080)
let tick = Duration.milliseconds(numbers.dropFirst().first ?? 250)

do {
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port))
    let system = server.actorSystem
    server.expose(Match.self, as: "matches/*", idle: .seconds(60)) { _ in Match(tick: tick, actorSystem: system) }
    print("serves matches on port \(try await server.start().port)")
    fflush(nil)  // Print immediately, even into a pipe.
    try await server.run()
} catch {  // a port that is in use
    FileHandle.standardError.write(Data("GameServer: \(error)\n".utf8))
    exit(1)
}
