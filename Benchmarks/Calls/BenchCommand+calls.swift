import Commands
import Glibc
import TrebuchetServices
import TrebuchetWire

extension BenchCommand {
    static let rpc = measure(
        "rpc", "typed calls: counter.add(_:), or other calls",
        [
            OptionSpec(
                "--call", "NAME",
                "measure \(CallRounds.Call.allCases.map(\.rawValue).joined(separator: ", ")) with a separate server, compared with a bare echo"
            ),
            OptionSpec("--rounds", "N", "with --call: rounds of echo and calls, of which the best counts (3)"),
            MeasuredServer.url,
            OptionSpec(
                "--size", "BYTES", "call board.length(of:) with a string of this size; requires 'serve --bench'"),
            OptionSpec("--uuid", nil, "call board.same(_:) with a UUID; requires 'serve --bench'"),
            OptionSpec("--actor", "NAME", "call this actor at --url"),
            OptionSpec("--method", "NAME", "method of the actor, such as 'place(_:)'"),
            OptionSpec("--arguments", "JSON", "arguments of each call as a JSON array ([])"),
            OptionSpec(
                "--token", "TOKEN",
                "credential at --url; visible to local users, so prefer TREBUCHET_TOKEN"),
            connections,
            OptionSpec("--in-flight", "N", "messages in flight per connection (16); with --call at most 1000"),
            OptionSpec("--seconds", "S", "duration of the measurement (5; with --call 2)"),
        ],
        discussion: """
            --call add is counter.add(_:), with an Int both ways; place takes an order of 236 bytes and returns a receipt, plain
            Codable; submit the same with @Wire; scale has a Double both ways; later is an async method that does not suspend;
            authorised is add at a server that identifies callers and authorizes each call; crossing is add at a
            server with two reactors that share the connections.

            Each is measured in turn with a bare TCP echo of 64 bytes, each server on one core and the load on the others, except
            crossing, whose server has all cores. percent_of_echo is the best call rate divided by the best echo rate;
            server_cpu_ns is the processor time of the server process per call, echo_cpu_ns that of the echo, and
            percent_of_echo_by_cpu their quotient, which depends less on machine load. crossing also has percent_of_cpu_at_home, its
            processor time divided by that of callers on the actor's reactor: less is better. Its server has two cores, so
            its percent_of_echo is not comparable.
            """
    ) { arguments in
        guard let name = arguments.string("--call") else { return try await simple(arguments) }
        guard let call = CallRounds.Call(rawValue: name) else {
            throw UsageError(
                "--call \(name): one of \(CallRounds.Call.allCases.map(\.rawValue).joined(separator: " "))")
        }
        for option in ["--url", "--size", "--uuid", "--actor", "--method", "--arguments", "--token"]
        where arguments.has(option) {
            throw UsageError("\(option) cannot be combined with --call, which uses separate servers")
        }
        let load = CallRounds(
            call: call, connections: try arguments.int("--connections", in: 1...19_000) ?? 64,
            inFlight: try arguments.int("--in-flight", in: 1...1_000) ?? 16,
            rounds: try arguments.int("--rounds", in: 1...1_000) ?? 3, seconds: try seconds(arguments, or: 2))
        return try await load.run()
    }

    private static func simple(_ arguments: ParsedArguments) async throws -> BenchReport {
        if arguments.has("--rounds") { throw UsageError("--rounds requires --call") }
        for option in ["--token", "--actor"] where arguments.has(option) && !arguments.has("--url") {
            throw UsageError("\(option) requires --url")
        }
        let call = try message(arguments)
        let token = arguments.string("--token") ?? getenv("TREBUCHET_TOKEN").map { String(cString: $0) }
        let isShown = arguments.has("--url") && token?.isEmpty == false
        let server = try MeasuredServer(arguments)
        defer { server.stop() }
        return try await requests(
            arguments, Array(call.utf8), server.url,
            subprotocols: [Invocation.subprotocol] + (isShown ? ["bearer.\(token!)"] : []),
            expecting: #""type":"response""#)
    }

    private static func message(_ arguments: ParsedArguments) throws -> String {
        let ways = ["--size", "--uuid", "--actor"].filter { arguments.has($0) }
        guard ways.count < 2 else { throw UsageError("\(ways[1]) cannot be combined with \(ways[0])") }
        if let actor = arguments.string("--actor") {
            guard let method = arguments.string("--method") else { throw UsageError("--actor requires --method") }
            let text = arguments.string("--arguments") ?? "[]"
            let isArray = Array(text.utf8).withUnsafeBytes {
                (try? ValueCoder().decode([JSONValue].self, from: $0)) != nil
            }
            guard isArray, let first = text.firstIndex(of: "["), let last = text.lastIndex(of: "]") else {
                throw UsageError("--arguments \(text): not a JSON array, such as '[1, \"two\"]'")
            }
            for name in [actor, method] where !name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) {
                throw UsageError("'\(name)' is not a valid name of an actor or a method")
            }
            return Invocation.text(actor, method, [String(text[text.index(after: first)..<last])])
        }
        for option in ["--method", "--arguments"] where arguments.has(option) {
            throw UsageError("\(option) requires --actor")
        }
        if let size = try arguments.int("--size", in: 0...(1 << 20) - 200) {
            return Invocation.text("board", "length(of:)", ["\"" + String(repeating: "x", count: size) + "\""])
        }
        guard arguments.has("--uuid") else { return Invocation.text("counter", "add(_:)", ["1"]) }
        return Invocation.text("board", "same(_:)", ["\"0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C\""])
    }

    static let bareEcho = CommandSpec(
        name: "bench bare-echo", summary: "host a bare TCP echo on one thread, with system calls only",
        options: [OptionSpec("--port", "PORT", "port to listen on at 127.0.0.1; 0 selects a free one (9000)")],
        run: BareEcho.run)
}
