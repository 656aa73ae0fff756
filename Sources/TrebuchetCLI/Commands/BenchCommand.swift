/// `trebuchet bench`: measures.
enum BenchCommand {
    static let spec = CommandSpec(
        name: "bench",
        summary: "measure what calls, streams and connections cost",
        operands: "<echo-server>",
        operandCount: 1...1,
        options: [
            OptionSpec("--host", "HOST", "echo-server: address to listen on (127.0.0.1)"),
            OptionSpec("--port", "PORT", "echo-server: port to listen on (9001)"),
            OptionSpec("--reactors", "N", "threads of the server (1)"),
        ],
        run: { arguments in
            switch arguments.operands[0] {
            case "echo-server": try await EchoServer.run(arguments)
            default: throw UsageError("unknown benchmark '\(arguments.operands[0])'")
            }
        })
}
