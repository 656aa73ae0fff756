import Commands
import Trebuchet
import TrebuchetWire

/// `trebuchet observe`: prints a state as it changes.
enum ObserveCommand {
    static let spec = CommandSpec(
        name: "observe",
        summary: "print each update of a streamed state as one JSON line",
        operands: "<actor> <stream>",
        operandCount: 2...2,
        options: RemoteURL.options + [
            RemoteURL.token,
            OptionSpec("--count", "N", "exit after N updates"),
            OptionSpec("--time", nil, "begin each line with the milliseconds since the first"),
            OptionSpec("--path", "POINTER", "only the part of the state at a JSON Pointer, such as /todos/0"),
            OptionSpec("--at-most-every", "MS", "at most one update per interval in milliseconds"),
            OptionSpec("--filter", "JSON", "a filter in wire format; combines with --path and --at-most-every"),
        ],
        discussion: """
            Prints the current value first, within --timeout unless --filter has a condition. A slow reader of the output
            gets the newest version. Reconnects after a lost connection and resumes the stream; reports losses and reconnections
            on standard error.
              trebuchet observe todos observeState
              trebuchet observe todos observeState --path /todos/0/title
              trebuchet observe counter observeState --filter '{"where":{"path":"/count","op":"gt","value":10}}'
            """,
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        let count = try arguments.int("--count", in: 1...Int.max)
        let filter = try filter(arguments)
        let client = try await RemoteURL.connectWithToken(arguments)
        // A filter may match only after a long time, so no timeout applies.
        if filter.condition != nil { CommandTimeout.current?.stop() }
        let reporting = ConnectionReporter.follow(client, of: "observe")
        defer { reporting.cancel() }
        var seen = 0
        var first: ContinuousClock.Instant?
        let values = client.observe(
            actor: arguments.operands[0], stream: arguments.operands[1], filter: filter == StreamFilter() ? nil : filter
        )
        for try await value in values {
            if seen == 0 { CommandTimeout.current?.stop() }
            let now = ContinuousClock.now
            let elapsed = Int((now - (first ?? now)) / .milliseconds(1))
            first = first ?? now
            Console.print(
                (arguments.has("--time") ? "\(elapsed) " : "") + LogLine.ofJSON(String(decoding: value, as: UTF8.self)))
            seen += 1
            if seen == count { break }
        }
        await client.close()
    }

    private static func filter(_ arguments: ParsedArguments) throws -> StreamFilter {
        var filter = StreamFilter()
        if let text = arguments.string("--filter") {
            do {
                filter = try Array(text.utf8).withUnsafeBytes { try StreamFilter($0) }
            } catch let error as EnvelopeError {
                throw UsageError("--filter: invalid filter '\(text)': \(error.message)")
            }
        }
        if let path = arguments.string("--path") { filter = filter.path(path) }
        if let interval = try arguments.int("--at-most-every", in: 1...StreamFilter.maximumInterval) {
            filter = filter.atMost(every: .milliseconds(interval))
        }
        return filter
    }
}
