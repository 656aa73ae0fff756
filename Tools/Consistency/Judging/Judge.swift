import Foundation
import Glibc
import TestSupport
import Trebuchet
import TrebuchetTesting

/// Runs one seed: starts the server or the nodes, and the client pools, ends them as planned, and compares the final state with all responses.
final class Judge {
    static let clientPools = 4
    static let shareOfIdempotentCalls = 0.6

    let options: Options
    let start = ContinuousClock.now
    private let seed: UInt64
    private let plan: FaultPlan
    private let folder: String
    private let reservations: [PortReservation]
    /// The ports of the servers for clients.
    private(set) var ports: [Int]
    /// The port of the engine, if there are nodes.
    private let enginePort: PortReservation?
    private let deadline: ContinuousClock.Instant
    let scores = Scoreboard()
    private var engine: GameEngine?
    /// Between each node and the engine.
    private var engineLinks: [FaultyLink] = []
    /// The servers that should run; nil for one that was ended and has not restarted yet.
    var servers: [ChildProgram?]
    /// With those that have ended.
    private(set) var startedServers: [(number: Int, program: ChildProgram)] = []
    /// With namespaces.
    private(set) var network: Machines?
    /// The times at which acknowledged calls may be lost.
    var losses: [ClosedRange<ContinuousClock.Instant>] = []
    /// When the seed made sentinels replace a primary.
    var plannedFailovers: [ClosedRange<ContinuousClock.Instant>] = []
    private var clientPools: [ChildProgram] = []
    /// The process of the writers, with nodes.
    private(set) var writers: ChildProgram?
    let history = WriteHistory()
    /// First player and number of players of all crews there were.
    private var players: [Range<Int>] = []
    var outcome = Outcome()

    /// The reason to end a seed early.
    struct Halt: Error {
        let description: String
    }

    init(seed: UInt64, _ options: Options) throws {
        self.seed = seed
        self.options = options
        let count = max(options.nodes, 1)
        plan = FaultPlan(seed: seed, nodes: options.nodes > 0 ? options.nodes : nil)
        // In namespaces each judge is process 1.
        folder = NSTemporaryDirectory() + "trebuchet-consistency-\(getpid())-\(seed)-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let free = SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false)
        reservations = (0..<count).map { _ in PortReservation(free) }
        ports = reservations.map(\.port)
        enginePort = options.nodes > 0 ? PortReservation(free) : nil
        servers = Array(repeating: nil, count: count)
        deadline = .now + options.limit
    }

    func run() async -> Outcome {
        do {
            if options.namespaces { try await startMachines() } else { try await startEngine() }
            for number in servers.indices { try await startServer(number) }
            if options.nodes > 0 { try await startWriters() }
            for pool in 0..<Self.clientPools { try startPool(pool, generation: 0) }
            if let network { try await playAndFail(network) } else { try await playAndKill() }
            if let network { allowLossesOfUnplannedFailovers(network) }
            if options.server == nil { try await compare(finish()) } else { try await finishCounters() }
            if options.nodes > 0 { try await finishWriting() }
        } catch let halt as Halt {
            outcome.findings.append(halt.description)
        } catch {
            outcome.findings.append("\(error)")
        }
        for program in clientPools + [writers].compactMap({ $0 }) + (servers + [engine?.program]).compactMap({ $0 })
            + (network?.programs ?? [])
        {
            program.kill()
            _ = await eventually(within: .seconds(5)) { !program.isRunning }
        }
        let now = scores.now
        outcome.totals = now.totals
        outcome.findings += now.findings
        outcome.findings += now.strange.map { "a client pool said: \($0)" }
        outcome.findings += history.now.findings + history.now.strange.map { "the writers said: \($0)" }
        if !outcome.findings.isEmpty, options.nodes > 0 { outcome.findings[outcome.findings.count - 1] += nodeLogs }
        try? await network?.namespaces.remove()
        try? FileManager.default.removeItem(atPath: folder)
        return outcome
    }

    // MARK: Processes

    private func startMachines() async throws {
        let plan = NetworkPlan(
            seed: seed, nodes: options.nodes, kinds: options.faults, isServed: options.server != nil)
        var served: ServedNode?
        if let executable = options.server {
            served = ServedNode(executable: executable, rulesFile: folder + "/rules.json")
            try ServedNode.rules.write(toFile: folder + "/rules.json", atomically: true, encoding: .utf8)
        }
        let network = try await Machines(
            plan, nodes: options.nodes, served: served, folder: folder, seed: seed,
            isVerbose: options.isVerbose)
        self.network = network
        ports = network.relays.map(\.address.port)
        try await network.startEngines { try await self.wait($0, until: $1) }
    }

    private func startEngine() async throws {
        guard let enginePort else { return }
        let engine = try GameEngine(port: enginePort.port, folder: folder)
        self.engine = engine
        try await wait("for the engine") { engine.isReady }
        let address = SocketAddress(host: "127.0.0.1", port: enginePort.port, isIPv6: false)
        if engineLinks.isEmpty { engineLinks = try servers.map { _ in try FaultyLink(to: address, seed: seed) } }
    }

    func startServer(_ number: Int) async throws {
        let server = try network?.startNode(number) ?? startProgram(number)
        servers[number] = server
        startedServers.append((number, server))
        try await wait("for server \(number) to listen") { server.isListening }
    }

    private func startProgram(_ number: Int) throws -> ChildProgram {
        let arguments =
            if engine != nil {
                [
                    "node", "redis://127.0.0.1:\(engineLinks[number].address.port)", "node-\(number)", "127.0.0.1",
                    "\(ports[number])", "-", GameDurability.engine.rawValue,
                ]
            } else {
                ["serve", folder + "/games.db", "\(ports[number])"]
            }
        return try ChildProgram(ServeProcess.built("Consistency"), arguments)
    }

    private func startPool(_ pool: Int, generation: Int) throws {
        let count = options.clients / Self.clientPools
        let first = 1 + generation * options.clients + pool * count
        players.append(first..<first + count)
        let scores = scores
        let program = try ChildProgram(
            ServeProcess.built("Consistency"),
            [
                options.server != nil ? "count" : options.web ? "play-web" : "play", "\(seed)",
                ports.map { "\($0)" }.joined(separator: ","),
                "\(first)", "\(count)",
                "\(isOrdered || options.server != nil ? max(options.calls, Self.callsInOrder) : options.calls)",
            ] + (strictness == .usual && options.server == nil ? [] : [strictness.rawValue])
        ) { scores.take($0, from: pool) }
        if pool < clientPools.count { clientPools[pool] = program } else { clientPools.append(program) }
    }

    private var isOrdered: Bool { strictness == .ordered }
    /// Calls of each client where nodes come and go in order, or have longer leases, which takes longer than other faults.
    private static let callsInOrder = 300

    private func startWriters() async throws {
        let history = history
        writers = try ChildProgram(
            ServeProcess.built("Consistency"),
            [
                "write", "\(seed)", ports.map { "\($0)" }.joined(separator: ","), "\(Self.clientPools)",
                strictness.rawValue,
            ]
        ) { history.take($0) }
        try await wait("for the writers to join") { history.now.hasJoined }
    }

    /// Waits for a condition. Throws if a process ends unexpectedly.
    func wait(_ what: String, until condition: () async throws -> Bool) async throws {
        while try await !condition() {
            for (number, server) in servers.enumerated() {
                // A node that has lost its slots ends by itself.
                if let end = server?.end, server?.ownsNothing != true {
                    throw Halt(description: "server \(number) \(end): \(server?.lines.suffix(20) ?? [])")
                }
            }
            if let program = network?.programs.first(where: { !$0.isRunning }) {
                throw Halt(description: "an engine or a sentinel \(program.end ?? ""): \(program.lines.suffix(20))")
            }
            if let end = engine?.program.end {
                throw Halt(description: "the engine \(end): \(engine?.program.lines.suffix(20) ?? [])")
            }
            for (number, pool) in clientPools.enumerated() {
                if let end = pool.end {
                    throw Halt(description: "client pool \(number) \(end): \(pool.lines.suffix(20))")
                }
            }
            if let end = writers?.end {
                throw Halt(description: "the writers \(end): \(writers?.lines.suffix(20) ?? [])")
            }
            guard scores.now.findings.isEmpty, history.now.findings.isEmpty else {
                throw Halt(description: "stopped while it waited \(what)")
            }
            try await endAtLimit(what)
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Throws when the time of the seed is over.
    func endAtLimit(_ what: String) async throws {
        guard ContinuousClock.now < deadline else { throw Halt(description: await describeHang(what)) }
    }

    /// A client of the judge. Neither its connection nor its calls take longer than the seed may.
    func connectedClient(callsWithin limit: Duration = .seconds(120)) async throws -> TrebuchetClient {
        var options = Player.options
        options.callTimeout = min(limit, max(.seconds(1), deadline - .now))
        let client = TrebuchetClient(transports: FaultyClientLinks.transports(ports), options: options)
        let ends = Count()
        let connecting = Task {
            defer { ends.add() }
            try await client.connect()
        }
        defer { connecting.cancel() }
        try await wait("for a connection of the judge") { ends.value > 0 }
        try await connecting.value
        return client
    }

    private func describeHang(_ what: String) async -> String {
        for pool in clientPools { pool.tell("status") }
        tellWriters("status")
        try? await Task.sleep(for: .seconds(2))
        let lines = scores.now.status.map { "\n    \($0)" }.joined()
        return "after \(options.limit) the seed still waited \(what); the clients:\(lines)"
            + servers.map { "\n    a server: \($0?.lines.suffix(20) ?? [])" }.joined()
            + "\n    the writers: \(history.now.commits.count) mutations, \(history.now.published.count) events, \(history.now.hasFinished ? "finished" : "at work")"
            + history.now.status.map { "\n    \($0)" }.joined()
    }

    // MARK: Faults

    private func playAndKill() async throws {
        let calls = Double(options.clients * options.calls) * Self.shareOfIdempotentCalls
        for (share, fault) in plan.faults {
            try await wait("for the moment of \(fault)") {
                let now = scores.now
                return now.ended >= Int(share * calls) || now.played.count == Self.clientPools
            }
            switch fault {
            case .kill(let server, let absence):
                outcome.kills += 1
                try await endServer(server, SIGKILL, absence)
            case .stop(let server, let absence):
                outcome.stops += 1
                try await endServer(server, SIGTERM, absence)
            case .pause(let server, let time):
                outcome.pauses += 1
                guard let pid = servers[server]?.pid else { continue }
                Glibc.kill(pid, SIGSTOP)
                try await Task.sleep(for: time)
                Glibc.kill(pid, SIGCONT)
            case .cutOff(let server, let time, let isLost):
                outcome.cutOffs += 1
                await engineLinks[server].pauseTraffic()
                try await Task.sleep(for: time)
                if isLost { await engineLinks[server].disconnectAll() }
                await engineLinks[server].resumeTraffic()
            case .killEngine(let absence):
                outcome.engineKills += 1
                let program = engine?.program
                engine = nil
                program?.kill()
                try await wait("for the engine to end") { program?.isRunning != true }
                try await Task.sleep(for: absence)
                try await startEngine()
            case .killPool(let pool):
                // A pool that has finished is not restarted.
                guard !scores.now.played.contains(pool) else { continue }
                outcome.killedPools += 1
                let program = clientPools[pool]
                program.kill()
                _ = await eventually(within: .seconds(20)) { !program.isRunning }
                try startPool(pool, generation: 1)
            }
        }
        try await wait("for the last call") { scores.now.played.count == Self.clientPools }
    }

    func endServer(_ number: Int, _ signal: Int32, _ absence: Duration) async throws {
        guard servers[number] != nil else { return }
        try await stopServer(number, signal)
        try await Task.sleep(for: absence)
        try await startServer(number)
    }

    func stopServer(_ number: Int, _ signal: Int32) async throws {
        guard let old = servers[number] else { return }
        servers[number] = nil
        if old.isRunning { Glibc.kill(old.pid, signal) }
        try await wait("for the server to end") { !old.isRunning }
        if signal == SIGTERM, old.end != "ended with 0" {
            throw Halt(description: "the server that was to stop \(old.end ?? ""): \(old.lines.suffix(20))")
        }
    }

    // MARK: The end

    /// How the board of each game has ended.
    private var boards: [Set<String>] = []
    /// Games of which it may have ended in one more way, at an owner that ended it and could not say how.
    private var gamesOfUnknownEnd: Set<Int> = []

    /// Closes the games, and returns their final states.
    private func finish() async throws -> [Ending] {
        let client = try await connectedClient()
        let games = try (0..<GameServer.games).map { try client.resolve(Game.self, id: GameServer.name($0)) }
        var endings: [Ending] = []
        for (number, game) in games.enumerated() { endings.append(try await close(game, number)) }
        boards = endings.map { [$0.boardDigest] }
        // Events have no newest one: who began to observe after the last begins with the next.
        var lastReport = ContinuousClock.now
        try await wait("for the readers to see the end") {
            if ContinuousClock.now - lastReport > .milliseconds(200) {
                // A game that has moved since restarts its board, and is closed once more.
                for (number, game) in games.enumerated() {
                    boards[number].insert(try await close(game, number).boardDigest)
                }
                lastReport = .now
            }
            return scores.now.done.count == Self.clientPools
        }
        await client.close()
        return endings
    }

    /// Closes a game, and retries after an unknown outcome: a node may be shutting down.
    private func close(_ game: Game, _ number: Int) async throws -> Ending {
        for _ in 0..<5 {
            do { return try await game.close() } catch let error as TrebuchetError where error.code == .unknownOutcome {
                gamesOfUnknownEnd.insert(number)
            }
        }
        return try await game.close()
    }

    private func compare(_ endings: [Ending]) {
        let now = scores.now
        outcome.acknowledged = now.acknowledged.count
        outcome.unknown = now.unknown.count
        outcome.refused = now.refused.count
        var turns: [Int: Int] = [:]
        for ending in endings {
            for (index, call) in ending.ledger.calls.enumerated() {
                if turns.updateValue(index + 1, forKey: call) != nil { found("call \(call) has run twice") }
                let player = call / Player.callsPerPlayer
                if !players.contains(where: { $0.contains(player) }) { found("no client has made call \(call)") }
            }
        }
        for (call, turn) in now.acknowledged {
            guard let ran = turns[call] else {
                if mayBeLost(call) {
                    outcome.lost += 1
                } else {
                    found("call \(call) was acknowledged, and is not there")
                }
                continue
            }
            // Where changes may be lost after their response, a repeat that was still on its way runs after that.
            if ran != turn, mayBeLost(call) { outcome.lost += 1 }
            if ran != turn, !mayBeLost(call) {
                found("call \(call) ran as the \(ran). of its game, and was answered as the \(turn).")
            }
        }
        for (call, reason) in now.refused where turns[call] != nil {
            found("call \(call) was refused as unsent (\(reason)), and has run")
        }
        outcome.unknownThatRan = now.unknown.count { turns[$0] != nil }
        if outcome.kills + outcome.stops + outcome.pauses + outcome.cutOffs + outcome.engineKills == 0,
            network == nil,
            !now.unknown.isEmpty
        {
            found("calls of @Idempotent methods ended with unknownOutcome though the server lived on: \(now.unknown)")
        }
        for final in now.finals {
            let parts = final.state.split(separator: " ")
            guard parts.count == 2, let game = Int(parts[0]), endings.indices.contains(game) else { continue }
            let truth = parts[1] == "ledger" ? [endings[game].ledgerDigest] : boards[game]
            if parts[1] == "board", gamesOfUnknownEnd.contains(game) { continue }
            if !truth.contains(final.digest) {
                found("\(final.reader): the \(parts[1]) in the end is not the server's")
            }
        }
        let readers = 2 * (options.clients + Self.clientPools * GameServer.games)
        if now.finals.count < readers { found("only \(now.finals.count) of \(readers) final states were reported") }
    }

    func found(_ text: String) { outcome.findings.append(text) }
}
