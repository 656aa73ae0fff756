import Commands

/// Compares a room with fan-outs of as many bytes to as many connections, in one run.
struct RoomFanoutLoad {
    /// More updates per second than a server delivers to 1,000 subscribers.
    private static let saturatedRate = 5_000.0

    let members: Int
    /// The presence patches per second of all members.
    let rate: Double
    /// The size of an event or a patch in bytes.
    let size: Int
    let seconds: Double

    func run(into report: inout BenchReport) async throws {
        let cores = Cores.ofProcess
        let areSeparate = cores.count > 1
        if areSeparate { Cores.keepThisProcess(on: Array(cores.dropFirst())) }
        defer { if areSeparate { Cores.keepThisProcess(on: cores) } }
        let core = areSeparate ? [cores[0]] : nil
        try await compareEvents(core, into: &report)
        try await comparePresence(core, into: &report)
    }

    private func compareEvents(_ core: [Int]?, into report: inout BenchReport) async throws {
        let events = try await measure(["bench", "services-server"], core) {
            try await $0.run(at: $1, .events(size: size))
        }
        let bytes = events.outcome.bytes / max(1, events.outcome.count)
        let state = try await measure(["serve", "--reactors", "1", "--bench"], core) {
            try await $0.run(at: $1, .board(size: size))
        }
        let bare = try await measureBare(bytes, rate: Self.saturatedRate, core)
        report.add("members", members)
        report.add("event_bytes", bytes)
        report.add("event_deliveries_per_second", events.outcome.perSecond)
        report.add("event_server_ns_per_delivery", events.cost)
        report.add("state_deliveries_per_second", state.outcome.perSecond)
        report.add("state_server_ns_per_delivery", state.cost)
        report.add("bare_deliveries_per_second", bare.outcome.perSecond)
        report.add("bare_cpu_ns_per_delivery", bare.cost)
        report.add("event_percent_of_state", 100 * events.outcome.perSecond / state.outcome.perSecond)
    }

    private func comparePresence(_ core: [Int]?, into report: inout BenchReport) async throws {
        let server = try MeasuredServer(command: ["bench", "services-server", "--port", "0"], cores: core)
        defer { server.stop() }
        let load = RoomLoad(.presence, rate: rate, bytes: size)
        let presence = try await load.run(server, members: members, seconds: seconds, into: &report)
        server.stop()
        let messages = max(1, presence.messages)
        let bytes = presence.bytes / messages
        let bareRate = Double(messages) / Double(members) / presence.seconds
        let bare = try await measureBare(bytes, rate: bareRate, core)
        let bareCores = bare.cost * bare.outcome.perSecond / 1e9
        report.add("presence_message_bytes", bytes)
        report.add("bare_server_cores_percent", bareCores * 100)
        report.add("presence_times_bare", presence.worked / presence.seconds / bareCores)
    }

    private struct Measurement {
        let outcome: FanoutCount.Outcome
        /// The processor time of the server per delivery in nanoseconds.
        let cost: Double
    }

    private func measureBare(_ bytes: Int, rate: Double, _ core: [Int]?) async throws -> Measurement {
        try await measure(
            ["bench", "bare-fanout", "--tick", "\(FanoutCount.tick)", "--size", "\(bytes)"], core, rate: rate
        ) { try await $0.run(atBare: $1, size: bytes) }
    }

    private func measure(
        _ command: [String], _ core: [Int]?, rate: Double = saturatedRate,
        _ body: (FanoutCount, MeasuredServer) async throws -> (FanoutCount.Outcome, Int)
    ) async throws -> Measurement {
        let server = try MeasuredServer(command: command + ["--port", "0"], cores: core)
        defer { server.stop() }
        Progress.printLine("\(command[command[0] == "bench" ? 1 : 0])…")
        let count = FanoutCount(subscribers: members, rate: rate, seconds: seconds)
        let (outcome, time) = try await body(count, server)
        guard outcome.count > 0 else { throw UsageError("nothing received from the server; increase --seconds") }
        return Measurement(outcome: outcome, cost: Double(time) / Double(outcome.count))
    }
}

extension FanoutCount.Messages {
    /// Publishes events in a room.
    ///
    /// - Parameter size: the size of the payload in bytes.
    fileprivate static func events(size: Int) -> Self {
        let room = "rooms/bench-fanout"
        let join = Invocation.text(room, "join(presence:token:attempt:)", ["null", "null", "null"])
        let payload = #"{"x":"\#(String(repeating: "x", count: max(0, size - 8)))"}"#
        return Self(publisher: [join], subscriber: [join, Invocation.text(room, "observeEvents")]) {
            Invocation.text(room, "publish(topic:payload:)", [#""bench""#, payload], id: "p\($0)")
        }
    }
}
