import Commands

extension BenchCommand {
    static let fanout = measure(
        "fanout", "one state to many subscribers",
        [
            OptionSpec(
                "--url", "URL",
                "a server started with 'serve --bench' (a separate process)"),
            OptionSpec("--subscribers", "N", "subscribers (1000)"),
            OptionSpec("--rate", "N", "updates per second (500)"),
            OptionSpec("--size", "BYTES", "size of the encoded state, which is sent as deltas (200)"),
            OptionSpec("--whole", nil, "change the whole state each time, so that it is sent as a snapshot"),
            OptionSpec("--stalled", "N", "subscribers that do not read during the measurement (0)"),
            OptionSpec("--bare", nil, "compare with a bare fan-out in C of as many bytes to as many sockets"),
            OptionSpec("--rounds", "N", "with --bare: rounds of both, of which the best counts (3)"),
            MeasuredServer.pid, seconds,
        ],
        discussion: """
            A change is sent as a delta of about 190 bytes if the state is larger; see delivery_bytes of --bare.

            With --bare, server and load have one core each, and subscribers only count bytes.
            percent_of_bare is the best delivery rate of the server divided by the best bare rate; at a rate that both sustain it is
            100. percent_of_bare_by_cpu is the processor time of a bare delivery divided by that of the server.
            """
    ) { arguments in
        if arguments.has("--bare") { return try await compareWithBare(arguments) }
        if arguments.has("--rounds") { throw UsageError("--rounds requires --bare") }
        let subscribers = try arguments.int("--subscribers", in: 1...19_000) ?? 1000
        // At least one subscriber must read to be measured.
        let stalled = try arguments.int("--stalled", in: 0...(subscribers - 1)) ?? 0
        let size = try arguments.int("--size", in: leastState...largestState) ?? 200
        let (rate, seconds) = try rate(arguments, for: try seconds(arguments))
        let server = try MeasuredServer(arguments)
        defer { server.stop() }
        let load = FanoutLoad(rate: rate, target: arguments.has("--whole") ? "rewrite(stamp:)" : "publish(stamp:)")
        return try await load.run(
            [server], subscribers: subscribers, stalled: stalled, size: size, seconds: seconds)
    }

    /// The size in bytes of the state without padding, and of the largest state that fits into a message.
    private static let leastState = 40
    private static let largestState = (1 << 20) - 400

    /// Returns the updates per second, adjusted so that at least one update occurs during the measurement.
    private static func rate(
        _ arguments: ParsedArguments, for seconds: Double
    ) throws -> (rate: Double, seconds: Double) {
        let rate = try arguments.double("--rate", in: 0.1...100_000) ?? 500
        guard rate * seconds >= 1 else {
            throw UsageError("--rate \(rate) makes no change in \(seconds) s; increase --rate or --seconds")
        }
        return (rate, seconds)
    }

    private static func compareWithBare(_ arguments: ParsedArguments) async throws -> BenchReport {
        for option in ["--url", "--pid", "--whole", "--stalled"] where arguments.has(option) {
            throw UsageError("\(option) cannot be combined with --bare, which starts separate servers")
        }
        let (rate, seconds) = try rate(arguments, for: try seconds(arguments, or: 2))
        return try await FanoutRounds(
            subscribers: try arguments.int("--subscribers", in: 1...9_000) ?? 1000,
            size: try arguments.int("--size", in: leastState...(1 << 15)) ?? 200, rate: rate,
            rounds: try arguments.int("--rounds", in: 1...1_000) ?? 3, seconds: seconds
        ).run()
    }
}
