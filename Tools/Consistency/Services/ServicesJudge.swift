import Foundation
import Glibc
import Networking
import Platform
import ServicesPython
import TestSupport
import Transports
import TrebuchetTesting

/// Runs one seed with services: clients in Swift, Python and TypeScript, each over its own faulty link, and servers that are killed: one
/// with a SQLite store, or several nodes with a Redis server. Compares what the clients observed, and the responses they received, with
/// each other and with the stored data.
final class ServicesJudge {
    private static let names = ["ada", "bob", "python", "web"]
    /// The members by the ids of the rooms: one room for all, and others for two each.
    private static let rooms = ["1": names, "2": ["ada", "python"], "3": ["ada", "bob"], "4": ["bob", "web"]]

    private let options: Options
    private let seed: UInt64
    private let folder: String
    private let ports: [PortReservation]
    /// The port of Redis; nil for one server without it.
    private let enginePort: PortReservation?
    private var engine: GameEngine?
    private let deadline: ContinuousClock.Instant
    private var random: RandomSource
    private let record = ServicesClientRecord()
    private let servers: [JudgedServer]
    private var clients: [ChildProgram] = []
    private var links: [FaultyLink] = []
    private var outcome = ServicesOutcome()

    init(seed: UInt64, _ options: Options) throws {
        self.seed = seed
        self.options = options
        random = RandomSource(seed: seed &* 7_919)
        folder = NSTemporaryDirectory() + "trebuchet-services-\(getpid())-\(seed)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        deadline = .now + options.limit
        let anyPort = SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false)
        ports = (0..<max(1, options.nodes)).map { _ in PortReservation(anyPort) }
        let enginePort = options.nodes > 0 ? PortReservation(anyPort) : nil
        self.enginePort = enginePort
        let folder = folder
        servers = ports.enumerated().map { number, port in
            let place =
                enginePort.map { ["redis://127.0.0.1:\($0.port)", "node-\(number)"] } ?? [folder + "/office.db"]
            return JudgedServer(["office"] + place + ["\(port.port)"], within: options.limit)
        }
    }

    func run() async -> ServicesOutcome {
        do {
            try await startServers()
            try await enter()
            try await playAndKill()
            try await end()
        } catch let halt as JudgedServer.Halt {
            outcome.findings.append(halt.description)
        } catch {
            outcome.findings.append("\(error)")
        }
        for link in links {
            let counters = link.counters
            outcome.cuts += counters.orderlyCloses + counters.resets + counters.halfOpens + counters.lateDeliveries
            outcome.connections += counters.accepted
            await link.close()
        }
        outcome.kills = servers.reduce(0) { $0 + $1.kills }
        outcome.stops = servers.reduce(0) { $0 + $1.stops }
        for program in clients + servers.compactMap(\.program) + [engine?.program].compactMap({ $0 }) {
            program.kill()
            _ = await eventually(within: .seconds(5)) { !program.isRunning }
        }
        outcome.findings += record.now.strange.map { "unexpected output of a client: \($0)" }
        try? FileManager.default.removeItem(atPath: folder)
        return outcome
    }

    // MARK: Processes

    private func startServers() async throws {
        if let enginePort {
            let engine = try GameEngine(port: enginePort.port, folder: folder)
            self.engine = engine
            try await wait("for Redis to start") { engine.isReady }
        }
        for server in servers { try await server.start() }
    }

    private func enter() async throws {
        for (number, name) in Self.names.enumerated() {
            let port = ports[number % ports.count].port
            let address = SocketAddress(host: "127.0.0.1", port: port, isIPv6: false)
            let link = try FaultyLink(to: address, seed: seed &* 3 &+ UInt64(number))
            links.append(link)
            let rooms = Self.rooms.filter { $0.value.contains(name) }.keys.sorted().joined(separator: ",")
            try start(name, link.address.port, rooms)
        }
        try await wait("for the clients to join") { record.now.joined.count == Self.names.count }
        clients[0].tell("found")
        try await wait("for the shared note") { record.now.reports[Self.names[0]] != nil }
    }

    private func start(_ name: String, _ port: Int, _ rooms: String) throws {
        let words = ["\(port)", name, "\(seed &* 31 &+ UInt64(clients.count))", "\(options.rounds)", rooms]
        let take: @Sendable (String) -> Void = { [record] in record.take($0, from: name) }
        if name == "python" {
            guard let script = ServicesPython.path(of: "guest") else {
                throw JudgedServer.Halt(description: "there is no guest.py")
            }
            clients.append(try ChildProgram(ServicesPython.interpreter, ["-u", script] + words, didPrint: take))
        } else if name == "web" {
            let script = BrowserClientPool.script("services.mjs")
            clients.append(try ChildProgram("/usr/bin/env", ["node", script] + words, didPrint: take))
        } else {
            clients.append(try ChildProgram(ServeProcess.built("Consistency"), ["visit"] + words, didPrint: take))
        }
    }

    /// Waits for a condition. Throws if a process ends unexpectedly.
    private func wait(_ what: String, until condition: () async throws -> Bool) async throws {
        try await servers[0].wait(what) {
            for server in servers { try server.checkRunning() }
            for client in clients {
                if let end = client.end {
                    throw JudgedServer.Halt(description: "a client \(end): \(client.lines.suffix(20))")
                }
            }
            return try await condition()
        }
    }

    // MARK: Faults

    private func playAndKill() async throws {
        for link in links {
            await link.setFaults(Self.faults(&random))
            await link.disconnectAll()
        }
        for client in clients { client.tell("play") }
        let (links, seed) = (links, seed)
        let cutting = Task { await ServicesJudge.cut(links, seed) }
        defer { cutting.cancel() }
        let shares = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            Double.random(in: 0.05...0.95, using: &random)
        }
        for share in shares.sorted() {
            try await wait("for the moment of the next kill") {
                let now = record.now
                return Double(now.rounds) >= share * Double(options.rounds * Self.names.count)
                    || now.played.count == Self.names.count
            }
            let isKill = Int.random(in: 0..<5, using: &random) > 0
            let absence = Duration.milliseconds(Int.random(in: 0...400, using: &random))
            let server = servers[Int.random(in: servers.indices, using: &random)]
            try await server.restart(isKill ? SIGKILL : SIGTERM, after: absence)
        }
        try await wait("for the last round") { record.now.played.count == Self.names.count }
        cutting.cancel()
        await cutting.value
        for link in links {
            await link.setFaults(.none)
            await link.disconnectAll()
        }
    }

    private static func faults(_ random: inout RandomSource) -> FaultyLink.Faults {
        if Int.random(in: 0..<4, using: &random) == 0 { return .mild }
        var faults = FaultyLink.Faults()
        faults.cutAfterBytes = 3_000...40_000
        faults.resets = 0.25
        faults.halfOpens = 0.25
        faults.lateDeliveries = 0.25
        faults.stallAfterBytes = 2_048...32_768
        faults.stallTime = .milliseconds(1)...(.milliseconds(60))
        faults.delay = .zero...(.milliseconds(5))
        faults.chunkBytes = 16...4_096
        return faults
    }

    /// Cuts lines now and then, beside what these do by themselves.
    private static func cut(_ links: [FaultyLink], _ seed: UInt64) async {
        var random = RandomSource(seed: seed &+ 1 << 20)
        while !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(Int.random(in: 20...250, using: &random)))
            let silence = Duration.milliseconds(Int.random(in: 50...600, using: &random))
            let cuts: [FaultyLink.Cut] = [.inOrder, .reset, .halfOpen(silence), .late(silence)]
            let link = links[Int.random(in: 0..<links.count, using: &random)]
            await link.disconnectAll(cuts[Int.random(in: 0..<cuts.count, using: &random)])
        }
    }

    // MARK: The end

    private func end() async throws {
        let livedOn = servers.allSatisfy { $0.kills + $0.stops == 0 }
        let first = try await settle(ServicesClientChecks(rooms: Self.rooms, serverLivedOn: livedOn), mood: 10_001)
        outcome.findings += ServicesClientChecks(rooms: Self.rooms, serverLivedOn: livedOn).findings(first, &outcome)
        // Acknowledged writes are stored, and all clients resume.
        for server in servers { try await server.restart(SIGKILL) }
        let judging = ServicesClientChecks(rooms: Self.rooms, serverLivedOn: false)
        var again = ServicesOutcome()
        let last = try await settle(judging, mood: 10_002)
        outcome.findings += judging.findings(last, &again)
        try start("reader", ports[0].port, "-")
        try await wait("for the reader") { record.now.joined.contains("reader") }
        let stored = try await reports(of: ["reader"]).first
        if Set(stored?.notes ?? []) != Set(last.first?.notes ?? []) {
            found("a reader who comes now is shown other notes")
        }
        if stored?.diary.isEmpty != true { found("a reader who is not signed in is shown pages of a diary") }
    }

    private func found(_ text: String) { outcome.findings.append(text) }

    /// All show and publish something last; the reports when everybody is shown all that is to be.
    private func settle(_ judging: ServicesClientChecks, mood: Int) async throws -> [ServicesClientReport] {
        let before = record.now.reports.mapValues(\.count)
        for client in clients { client.tell("finish \(mood)") }
        try await wait("for the clients to finish") {
            record.haveReported(Self.names, since: before)
        }
        while true {
            let reports = try await reports(of: Self.names)
            let problems = judging.unsettled(reports, mood: mood)
            if problems.isEmpty { return reports }
            guard ContinuousClock.now < deadline - .seconds(1) else {
                throw JudgedServer.Halt(description: "in the end: " + problems.joined(separator: "\n    "))
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private func reports(of names: [String]) async throws -> [ServicesClientReport] {
        let before = record.now.reports.mapValues(\.count)
        for client in clients { client.tell("report") }
        try await wait("for reports") {
            record.haveReported(names, since: before)
        }
        let now = record.now
        return names.compactMap { now.reports[$0]?.report }
    }
}
