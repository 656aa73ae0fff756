import Glibc
import Trebuchet
import TrebuchetStore

/// `trebuchet serve`: hosts the example actors.
enum ServeCommand {
    static let spec = CommandSpec(
        name: "serve",
        summary: "host the example actors todos, counter and game",
        options: [
            OptionSpec("--host", "HOST", "address to listen on (127.0.0.1)"),
            OptionSpec("--port", "PORT", "port to listen on; 0 takes a free one (8080)"),
            OptionSpec("--tls-cert", "FILE", "serve wss with this certificate chain (PEM); SIGHUP reads it again"),
            OptionSpec("--tls-key", "FILE", "its private key (PEM)"),
            OptionSpec("--tls-client-ca", "FILE", "ask clients for a certificate of these authorities"),
            OptionSpec(
                "--data", "FILE", "keep persisted states in this SQLite file, made when it is not there (memory)"),
            OptionSpec("--compression", nil, "compress messages from 1 KiB on with clients that offer it"),
            OptionSpec("--reactors", "N", "threads that serve (one per core)"),
            OptionSpec("--bench", nil, "also host board, the actor of 'bench fanout --url'"),
            OptionSpec("--drain-timeout", "SECONDS", "how long calls under way may take at shutdown (10)"),
        ] + HostedServices.options,
        discussion: """
            Prints the address it listens on. GET /healthz answers 200.
            SIGINT and SIGTERM drain and exit 0; a second one exits at once.
            """,
        run: run)

    /// The example actors; with `board`, what `bench fanout` publishes to.
    static func expose(on server: TrebuchetServer, withBoard: Bool) async {
        await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
        await server.expose(GameServer(actorSystem: server.actorSystem), as: "game")
        if withBoard { await server.expose(Board(actorSystem: server.actorSystem), as: "board") }
    }

    private static func run(_ arguments: ParsedArguments) async throws {
        let host = arguments.string("--host") ?? "127.0.0.1"
        let port = try arguments.int("--port", in: 0...65535) ?? 8080
        let reactors = try arguments.int("--reactors", in: 1...1024)
        let drain = try arguments.double("--drain-timeout", in: 0...3600) ?? 10

        // Before it listens: a signal that comes early ends it in order too.
        let signals = ShutdownSignals()
        let tls = try TLSOptions.server(arguments)
        var transport: TrebuchetTransport =
            tls.map { .webSocket(host: host, port: port, tls: $0) } ?? .webSocket(host: host, port: port)
        if arguments.has("--compression") { transport = transport.compressed() }
        let services = try HostedServices(arguments)
        let store = try arguments.string("--data").map { try SQLiteStore(path: $0) }
        let server = TrebuchetServer(
            transport: transport, reactors: reactors, access: services.access, store: store)
        await expose(on: server, withBoard: arguments.has("--bench"))
        services.expose(on: server, store: store ?? MemoryStore())
        let address = try await server.start()
        let url = "\(tls == nil ? "ws" : "wss")://\(address)"
        let health = "\(tls == nil ? "http" : "https")://\(address)/healthz"
        let names = (["todos", "counter", "game"] + services.names).joined(separator: ", ")
        print("trebuchet serves \(names) on \(url) (health: \(health))")
        print(
            store.map { "state: persisted in \($0.path)" }
                ?? "state: in memory, gone when this process ends; --data FILE keeps it")
        print(
            "try: trebuchet observe --url \(url) todos observeState    "
                + "and: trebuchet call --url \(url) todos 'addTodo(title:)' '\"Milk\"'")
        if tls != nil {
            signals.onHangUp {
                do {
                    try server.reloadCertificates()
                    Console.error("trebuchet serve: certificates read again")
                } catch {
                    Console.error("trebuchet serve: goes on with the old certificates: \(error)")
                }
            }
        }
        signals.onFirst {
            Console.error("trebuchet serve: shutting down (once more to stop at once)")
            await server.shutdown(drain: .seconds(drain))
        }
        try await server.run()
        await store?.close()
    }
}
