import Commands

extension BenchCommand {
    static let fanout = measure(
        "fanout", "one state to many subscribers",
        [
            OptionSpec(
                "--url", "URL",
                "a server started with 'serve --bench'; without it one is started in a process of its own"),
            OptionSpec("--subscribers", "N", "subscribers (1000)"),
            OptionSpec("--rate", "N", "updates per second (500)"),
            OptionSpec("--size", "BYTES", "of the encoded state; what is sent is what has changed (200)"),
            OptionSpec("--whole", nil, "change all of the state each time, so that it is sent as a whole"),
            OptionSpec("--stalled", "N", "so many of the subscribers read nothing while it is measured (0)"),
            OptionSpec("--bare", nil, "beside a bare fan-out in C of as many bytes to as many sockets"),
            OptionSpec("--rounds", "N", "with --bare: turns of both, of which the best count (3)"),
            MeasuredServer.pid, seconds,
        ],
        discussion: """
            What is sent of a change is the difference, some 190 bytes whatever the state has, where that is less: delivery_bytes of --bare tells.

            With --bare, server and load have a core each, and who subscribes counts what comes and looks at nothing.
            percent_of_bare is the best of the server's deliveries over the best of the bare ones; at a rate that both can keep up with, it is
            100, and percent_of_bare_by_cpu tells: the processor time of a bare delivery over that of the server's.
            """
    ) { arguments in
        if arguments.has("--bare") { return try await besideBare(arguments) }
        if arguments.has("--rounds") { throw UsageError("--rounds goes with --bare") }
        let subscribers = try arguments.int("--subscribers", in: 1...19_000) ?? 1000
        // One at least has to read, to be measured.
        let stalled = try arguments.int("--stalled", in: 0...(subscribers - 1)) ?? 0
        let size = try arguments.int("--size", in: leastState...largestState) ?? 200
        let (rate, seconds) = try rate(arguments, for: try seconds(arguments))
        let server = try MeasuredServer(arguments)
        defer { server.stop() }
        let load = FanoutLoad(rate: rate, target: arguments.has("--whole") ? "rewrite(stamp:)" : "publish(stamp:)")
        return try await load.run(
            [server], subscribers: subscribers, stalled: stalled, size: size, seconds: seconds)
    }

    /// Bytes of the state without any padding, and of one that goes into a message with all around it.
    private static let leastState = 40
    private static let largestState = (1 << 20) - 400

    /// Updates per second, of which one at least comes while it is measured.
    private static func rate(
        _ arguments: ParsedArguments, for seconds: Double
    ) throws -> (rate: Double, seconds: Double) {
        let rate = try arguments.double("--rate", in: 0.1...100_000) ?? 500
        guard rate * seconds >= 1 else {
            throw UsageError("--rate \(rate) makes no change in \(seconds) s: more of --rate or --seconds")
        }
        return (rate, seconds)
    }

    private static func besideBare(_ arguments: ParsedArguments) async throws -> BenchReport {
        for option in ["--url", "--pid", "--whole", "--stalled"] where arguments.has(option) {
            throw UsageError("\(option) does not go with --bare, which starts servers of its own")
        }
        let (rate, seconds) = try rate(arguments, for: try seconds(arguments, or: 2))
        return try await FanoutRounds(
            subscribers: try arguments.int("--subscribers", in: 1...9_000) ?? 1000,
            size: try arguments.int("--size", in: leastState...(1 << 15)) ?? 200, rate: rate,
            rounds: try arguments.int("--rounds", in: 1...1_000) ?? 3, seconds: seconds
        ).run()
    }
}
