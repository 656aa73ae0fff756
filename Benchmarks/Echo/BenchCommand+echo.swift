import Commands
import Transports

extension BenchCommand {
    static let echo = measure(
        "echo", "WebSocket echo, against bench echo-server",
        [
            OptionSpec("--url", "URL", "the echo server (ws://127.0.0.1:9001)"),
            OptionSpec("--size", "BYTES", "of each message (64)"), connections, inFlight,
            OptionSpec("--bare", nil, "a server of its own, beside a bare echo of as many bytes"),
            OptionSpec("--rounds", "N", "with --bare: turns of both, of which the best count (3)"),
            OptionSpec(
                "--tls-cert", "FILE", "with --bare: the same through TLS too, with this certificate chain (PEM)"),
            OptionSpec("--tls-key", "FILE", "its private key (PEM)"), seconds,
        ],
        discussion: """
            With --bare, one load drives both in turn: it sends messages that were made before and looks at the first answer alone. Server
            and load have a core each. percent_of_bare is the best of the WebSocket's echoes over the best of the bare ones; server_cpu_ns is the
            processor time of the server's process for a message, bare_cpu_ns that of the bare echo, and percent_of_bare_by_cpu the
            one over the other, which a busy machine changes less. The figures that begin with tls stand beside those without TLS.
            """
    ) { arguments in
        let size = try arguments.int("--size", in: 1...(16 << 20)) ?? 64
        guard arguments.has("--bare") else {
            for option in ["--rounds", "--tls-cert", "--tls-key"] where arguments.has(option) {
                throw UsageError("\(option) goes with --bare")
            }
            let url = arguments.string("--url") ?? "ws://127.0.0.1:9001"
            do {
                return try await requests(arguments, Array(repeating: 0x61, count: size), url)
            } catch let error as TransportError where !arguments.has("--url") {
                throw UsageError("\(error); 'trebuchet bench echo-server' starts what this measures")
            }
        }
        guard !arguments.has("--url") else {
            throw UsageError("--url does not go with --bare, which starts servers of its own")
        }
        let connections = try arguments.int("--connections", in: 1...19_000) ?? 64
        let inFlight = try arguments.int("--in-flight", in: 1...1_000) ?? 16
        try checkUnderWay(connections, inFlight, size)
        return try await EchoRounds(
            size: size, connections: connections, inFlight: inFlight,
            rounds: try arguments.int("--rounds", in: 1...1_000) ?? 3, seconds: try seconds(arguments, or: 2),
            tls: try TLSOptions.server(arguments)
        ).run()
    }

    static let echoServer = CommandSpec(
        name: "bench echo-server", summary: "a bare WebSocket echo, until SIGINT or SIGTERM",
        options: [
            OptionSpec("--host", "HOST", "address to listen on (127.0.0.1)"),
            OptionSpec("--port", "PORT", "port to listen on; 0 takes a free one (9001)"),
            OptionSpec("--reactors", "N", "threads that serve (1)"),
            OptionSpec("--tls-cert", "FILE", "serve wss with this certificate chain (PEM)"),
            OptionSpec("--tls-key", "FILE", "its private key (PEM)"),
            OptionSpec("--compression", nil, "compress all messages with clients that offer it"),
        ],
        run: EchoServer.run)
}
