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
        let server = try MeasuredServer(arguments)
        defer { server.stop() }
        let subscribers = try arguments.int("--subscribers", in: 1...19_000) ?? 1000
        let load = FanoutLoad(
            rate: try arguments.double("--rate", in: 0.1...100_000) ?? 500,
            target: arguments.has("--whole") ? "rewrite(stamp:)" : "publish(stamp:)")
        return try await load.run(
            [server], subscribers: subscribers, stalled: try arguments.int("--stalled", in: 0...subscribers) ?? 0,
            size: try arguments.int("--size", in: 1...(1 << 20)) ?? 200, seconds: try seconds(arguments))
    }

    private static func besideBare(_ arguments: ParsedArguments) async throws -> BenchReport {
        for option in ["--url", "--pid", "--whole", "--stalled"] where arguments.has(option) {
            throw UsageError("\(option) does not go with --bare, which starts servers of its own")
        }
        return try await FanoutRounds(
            subscribers: try arguments.int("--subscribers", in: 1...9_000) ?? 1000,
            size: try arguments.int("--size", in: 1...(1 << 15)) ?? 200,
            rate: try arguments.double("--rate", in: 0.1...100_000) ?? 500,
            rounds: try arguments.int("--rounds", in: 1...1_000) ?? 3, seconds: try seconds(arguments, or: 2)
        ).run()
    }
}
