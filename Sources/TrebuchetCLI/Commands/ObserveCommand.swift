import Trebuchet

/// `trebuchet observe`: prints a state as it changes.
enum ObserveCommand {
    static let spec = CommandSpec(
        name: "observe",
        summary: "print each update of a streamed state as one JSON line",
        operands: "<actor> <stream>",
        operandCount: 2...2,
        options: RemoteURL.options + [
            OptionSpec("--count", "N", "end after N updates")
        ],
        discussion: """
            The current value comes first. A reader that is slower than the changes gets the newest each time. When the
            server goes, it is tried again until it is back, and the stream goes on; standard error says so.
              trebuchet observe todos observeState
            """,
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        let count = try arguments.int("--count", in: 1...Int.max)
        let client = try await RemoteURL.connect(arguments)
        let states = client.connectionState
        let telling = Task {
            for await state in states.stream { tell(state) }
        }
        defer { telling.cancel() }
        var seen = 0
        for try await value in client.observe(actor: arguments.operands[0], stream: arguments.operands[1]) {
            print(String(decoding: value, as: UTF8.self))
            seen += 1
            if seen == count { break }
        }
        await client.close()
    }

    private static func tell(_ state: TrebuchetClient.ConnectionState) {
        switch state {
        case .connecting(let attempt, let error):
            let reason = error.map { ": \($0.message)" } ?? ""
            Console.error("trebuchet observe: connecting, attempt \(attempt)\(reason)")
        case .connected: Console.error("trebuchet observe: connected")
        case .draining: Console.error("trebuchet observe: the server shuts down; another connection will be made")
        case .disconnected(let error?): Console.error("trebuchet observe: gave up: \(error.message)")
        case .disconnected(nil), .closed: break
        }
    }
}
