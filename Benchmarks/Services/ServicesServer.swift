import Commands
import Trebuchet
import TrebuchetServices
import TrebuchetStore

/// `trebuchet bench services-server`: the collections and rooms of a load, without rates, and a persisted actor beside them.
enum ServicesServer {
    static let command = CommandSpec(
        name: "bench services-server",
        summary: "host collections and rooms without rates, and a persisted actor, until SIGINT or SIGTERM",
        options: [
            OptionSpec("--port", "PORT", "port to listen on; 0 selects a free one (9002)"),
            OptionSpec("--data", "FILE", "SQLite file of the data; in memory without"),
        ],
        run: run)

    private static var rate: RateLimit { RateLimit(callsPerSecond: 1e9, burst: 1_000_000_000) }

    private static var collectionLimits: CollectionLimits {
        var limits = CollectionLimits()
        (limits.documentsPerCollection, limits.collectionBytes) = (100_000, 64 << 20)
        (limits.readsPerConnection, limits.writesPerConnection, limits.writesPerPrincipal, limits.writesPerHost) = (
            rate, rate, rate, rate
        )
        return limits
    }

    private static var roomLimits: RoomLimits {
        var limits = RoomLimits()
        (limits.joinsPerConnection, limits.presenceUpdatesPerConnection, limits.publishesPerConnection) = (
            rate, rate, rate
        )
        return limits
    }

    private static func run(_ arguments: ParsedArguments) async throws {
        let signals = ShutdownSignals()
        let port = try arguments.int("--port", in: 0...65535) ?? 9002
        let store = try arguments.string("--data").map { try SQLiteStore(path: $0) }
        var access = AccessPolicy()
        access.identifiesCallers = true
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 1, access: access, store: store)
        if let store {
            CollectionHost.expose(on: server, store: store, limits: collectionLimits)
        } else {
            CollectionHost.expose(on: server, limits: collectionLimits)
        }
        RoomHost.expose(on: server, limits: roomLimits)
        await server.expose(Bank(actorSystem: server.actorSystem), as: "bank")
        Console.announce("serves collections, rooms and bank on ws://\(try await server.start()) (WebSocket)")
        await signals.first()
        await server.shutdown()
        await store?.close()
    }
}
