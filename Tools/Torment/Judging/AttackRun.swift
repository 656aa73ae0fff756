import TestSupport

/// The servers of a run: the plain one, with `--tls` one more, and for `output` two more.
struct AttackRun: Sendable {
    let daemons: [Daemon]
    private let before: [Daemon.Levels]
    let pool: ScenarioPool
    var patience = Duration.seconds(15)
    private let memorySlack: Int

    /// Starts them.
    init(
        _ options: Options, lines: Set<Scenario.PortKind>, honest: (([Daemon]) async throws -> Void)? = nil
    ) async throws {
        var daemons = [try await Daemon(options.tool)]
        var ports = ScenarioPool.Ports(plain: daemons[0].port)
        if !lines.isDisjoint(with: [.tls, .bare]) {
            daemons.append(try await Daemon(options.tool, isSecure: true))
            (ports.others[.tls], ports.others[.bare]) = (daemons[1].port, daemons[1].port)
        }
        for line in [Scenario.PortKind.full, .closed] where lines.contains(line) {
            let daemon = try await Daemon(options.tool, output: line)
            daemons.append(daemon)
            ports.others[line] = daemon.port
        }
        try await honest?(daemons)
        var before: [Daemon.Levels] = []
        for daemon in daemons { before.append(try await Self.resting(daemon)) }
        self.daemons = daemons
        self.before = before
        // In a short run the allocator has not met all sizes by the end of the warm-up: it retains partly used pages, in one run four
        // times the necessary number. The memory in use is checked in short and long runs alike.
        memorySlack = options.seconds < 300 && options.replay == nil ? 32 << 10 : 0
        pool = ScenarioPool(ports, patience: options.patience)
    }

    /// The levels of a started server: those that it reports three times in succession.
    private static func resting(_ daemon: Daemon) async throws -> Daemon.Levels {
        var levels = try await daemon.levels()
        var same = 0
        _ = try await eventually(within: .seconds(15)) {
            let next = try await daemon.levels()
            same = next.report == levels.report && next.descriptors == levels.descriptors ? same + 1 : 0
            levels = next
            return same == 20
        }
        return levels
    }

    private var inspectors: [Inspector] {
        zip(daemons, before).map { daemon, before in
            var inspector = Inspector(daemon, before: before)
            inspector.patience = patience
            inspector.memorySlack = memorySlack
            return inspector
        }
    }

    var death: Finding? {
        for inspector in inspectors {
            if let end = inspector.daemon.program.end { return inspector.died(end) }
        }
        return nil
    }

    /// Checks the servers after the scenarios of a pool have run; closes the retained connections.
    ///
    /// - Parameter wanted: the expected finding; checks that cannot show it are omitted.
    func judge(_ outcome: ScenarioPool.Outcome, wanted: Finding? = nil) async -> Finding? {
        defer { for socket in outcome.openSockets { socket.close() } }
        if let complaint = outcome.complaint {
            // A dead server answers no calls.
            _ = await eventually(within: .seconds(2)) { death != nil }
            let scenario = complaint.scenario.description.prefix(2_000)
            return death ?? .owed("a correct client failed: \(complaint.text)\n    \(scenario)")
        }
        if let wanted, !wanted.isSeenByLooking { return death }
        for inspector in inspectors {
            if let finding = await inspector.whileStill() { return finding }
        }
        for socket in outcome.openSockets { socket.close() }
        for inspector in inspectors {
            if let finding = await inspector.whenGone() { return finding }
        }
        return nil
    }

    func memory() async throws -> [Daemon.Memory] {
        var all: [Daemon.Memory] = []
        for daemon in daemons { all.append(try await daemon.memory()) }
        return all
    }

    func memory(above base: [Daemon.Memory]) async -> Finding? {
        for (inspector, base) in zip(inspectors, base) {
            if let finding = await inspector.memory(above: base) { return finding }
        }
        return nil
    }

    func memory(_ now: [Daemon.Memory], above base: [Daemon.Memory]) -> Finding? {
        for (inspector, (now, base)) in zip(inspectors, zip(now, base)) {
            if let finding = inspector.excessMemory(now, above: base) { return finding }
        }
        return nil
    }

    /// Requests the servers without a reader of their output to stop, which they must.
    func endInOrder() async -> Finding? {
        for daemon in daemons where daemon.output != nil {
            guard await daemon.endInOrder() else {
                return .noAnswer("\(daemon.name) still runs, or did not exit with 0, 30 s after SIGTERM")
            }
        }
        return nil
    }

    func stop() async { for daemon in daemons { await daemon.stop() } }
}
