import Trebuchet
import TrebuchetStore

/// `Consistency serve FILE PORT`: the games, in a process that can be killed.
enum GameServer {
    static let games = 2

    static func name(_ game: Int) -> String { "games/\(game)" }

    /// Short intervals, so that half-open connections are detected while the seed runs.
    static var limits: ServerLimits {
        var limits = ServerLimits()
        limits.connections.pingInterval = .seconds(2)
        limits.connections.pongTimeout = .seconds(2)
        return limits
    }

    static func run(file: String, port: Int) async throws {
        var options = SQLiteStore.Options()
        // The seed ends processes, not the machine.
        options.durability = .processEnd
        let store = try SQLiteStore(path: file, options: options)
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 2, limits: limits, store: store)
        for game in 0..<games { await server.expose(Game(actorSystem: server.actorSystem), as: name(game)) }
        try await server.serveJudge(drain: .seconds(1))
        await store.close()
    }
}

extension TrebuchetServer {
    /// Says that it listens, and serves until SIGTERM, which may come as soon as that is said.
    func serveJudge(drain: Duration) async throws {
        let signals = ShutdownSignals([.terminate])
        defer { signals.restoreHandlers() }
        if address == nil { try await start() }
        print("listening")
        signals.onFirst { await self.shutdown(drain: drain) }
        try await run(shutdownOn: [])
    }
}
