import Foundation
import GameModel
import Trebuchet

// GamePlayer NAME [--bot] [--match NAME] [--port PORT]
let words = Array(CommandLine.arguments.dropFirst())
func value(_ option: String) -> String? { words.firstIndex(of: option).flatMap { words.dropFirst($0 + 1).first } }
let name = words.first ?? "nobody"
let isBot = words.contains("--bot")

do {
    let client = TrebuchetClient(
        transport: .webSocket(host: "127.0.0.1", port: value("--port").flatMap { UInt16($0) } ?? 8080))
    try await client.connect()
    let match = try client.resolve(Match.self, id: "matches/" + (value("--match") ?? "first"))
    // Observe before joining, to receive the beginning.
    let news = await match.observeNews()
    try await match.join(name: name)

    // The bot answers each board with a turn; a human sees it.
    let watching = Task {
        for await board in await match.observeBoard() {
            if isBot { try await play(board, match) } else { print(picture(board)) }
        }
    }
    if !isBot { startReadingKeys(for: match) }

    for try await event in news {
        print(sentence(for: event))
        fflush(nil)  // Print immediately, even into a pipe.
        if case .won = event { break }
    }
    watching.cancel()
    await client.close()
} catch {  // no server, a match that is full
    FileHandle.standardError.write(Data("GamePlayer: \(error)\n".utf8))
    exit(1)
}

/// Continues straight if possible, else turns to the first free direction.
func play(_ board: Board, _ match: Match) async throws {
    guard let me = board.riders.first(where: { $0.name == name }), !board.isFree(me.next(me.direction)),
        let way = Direction.allCases.first(where: { board.isFree(me.next($0)) })
    else { return }
    try await match.turn(name: name, to: way)
}

func startReadingKeys(for match: Match) {
    Thread.detachNewThread {
        while let key = readLine() {
            if key == "q" { exit(0) }
            guard let way = ["w": Direction.up, "a": .left, "s": .down, "d": .right][key] else { continue }
            Task { try await match.turn(name: name, to: way) }
        }
    }
}

func picture(_ board: Board) -> String {
    var rows = Array(repeating: Array(repeating: Character("·"), count: Board.width), count: Board.height)
    for (sign, rider) in zip("AB", board.riders) {
        for place in rider.trail where rows.indices.contains(place.y) && rows[place.y].indices.contains(place.x) {
            rows[place.y][place.x] = sign
        }
    }
    return "\u{1B}[H\u{1B}[2J" + rows.map { String($0) }.joined(separator: "\n")
}

func sentence(for event: MatchEvent) -> String {
    switch event {
    case .begun(let names): names.joined(separator: " against ")
    case .crashed(let name, let tick): "\(name) crashed at tick \(tick)"
    case .won(let name): name.map { "\($0) won" } ?? "nobody won"
    }
}
