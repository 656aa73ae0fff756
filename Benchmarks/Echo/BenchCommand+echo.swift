import Commands
import Transports

extension BenchCommand {
    static let echo = measure(
        "echo", "WebSocket echo with 'bench echo-server'",
        [
            OptionSpec("--url", "URL", "the echo server (ws://127.0.0.1:9001)"),
            OptionSpec("--size", "BYTES", "size of each message (64)"), connections, inFlight,
            OptionSpec("--bare", nil, "a separate server, compared with a bare echo of as many bytes"),
            OptionSpec("--rounds", "N", "with --bare: rounds of both, of which the best counts (3)"),
            OptionSpec(
                "--tls-cert", "FILE", "with --bare: also with TLS and this certificate chain (PEM)"),
            OptionSpec("--tls-key", "FILE", "private key of the chain (PEM)"), seconds,
        ],
        discussion: """
            With --bare, one load drives both in turn: it sends prepared messages and checks only the first response. Server
            and load have one core each. percent_of_bare is the best WebSocket rate divided by the best bare rate; server_cpu_ns is the
            processor time of the server process per message, bare_cpu_ns that of the bare echo, and percent_of_bare_by_cpu their
            quotient, which depends less on machine load. Metrics that begin with tls are those with TLS.
            """
    ) { arguments in
        let size = try arguments.int("--size", in: 1...(16 << 20)) ?? 64
        guard arguments.has("--bare") else {
            for option in ["--rounds", "--tls-cert", "--tls-key"] where arguments.has(option) {
                throw UsageError("\(option) requires --bare")
            }
            let url = arguments.string("--url") ?? "ws://127.0.0.1:9001"
            do {
                return try await requests(arguments, Array(repeating: 0x61, count: size), url)
            } catch let error as TransportError where !arguments.has("--url") {
                throw UsageError("\(error); start the server with 'trebuchet bench echo-server'")
            }
        }
        guard !arguments.has("--url") else {
            throw UsageError("--url cannot be combined with --bare, which starts separate servers")
        }
        let connections = try arguments.int("--connections", in: 1...19_000) ?? 64
        let inFlight = try arguments.int("--in-flight", in: 1...1_000) ?? 16
        try checkInFlight(connections, inFlight, size)
        return try await EchoRounds(
            size: size, connections: connections, inFlight: inFlight,
            rounds: try arguments.int("--rounds", in: 1...1_000) ?? 3, seconds: try seconds(arguments, or: 2),
            tls: try TLSOptions.server(arguments)
        ).run()
    }

    static let echoServer = CommandSpec(
        name: "bench echo-server", summary: "host a WebSocket echo until SIGINT or SIGTERM",
        options: [
            OptionSpec("--host", "HOST", "address to listen on (127.0.0.1)"),
            OptionSpec("--port", "PORT", "port to listen on; 0 selects a free one (9001)"),
            OptionSpec("--reactors", "N", "reactor threads (1)"),
            OptionSpec("--tls-cert", "FILE", "serve wss with this certificate chain (PEM)"),
            OptionSpec("--tls-key", "FILE", "private key of the chain (PEM)"),
            OptionSpec("--compression", nil, "compress all messages with clients that offer it"),
        ],
        run: EchoServer.run)
}
