import Foundation
import Glibc
import TestSupport
import Trebuchet

/// Faults of a network of namespaces.
extension Judge {
    /// How soon after a fault all nodes answer all calls again.
    private static let maximumHealing = Duration.seconds(25)
    /// When a lease is surely over: 2 s, or 5 s of `trebuchet serve`, and what rounds and a busy machine take.
    private var leasesOver: Duration { options.server == nil ? .seconds(3) : .seconds(6) }
    /// How soon nodes leave a primary that another one has replaced: asked for each second; and answers may be late at their clients.
    private static let slowestToLeave = Duration.seconds(8)
    /// The same limit while one sentinel still reports the old primary.
    private static let slowestToLeaveSplit = Duration.seconds(4)
    /// The maximum delay of a response: connections are slow and stall.
    private static let latestAnswer = Duration.seconds(2)

    func playAndFail(_ machines: Machines) async throws {
        let calls = Double(options.clients * options.calls) * Self.shareOfIdempotentCalls
        for (share, fault) in machines.plan.faults {
            try await wait("for the moment of \(fault)") {
                let now = scores.now
                return now.ended >= Int(share * calls) || now.played.count == Self.clientPools
            }
            note("fault \(fault)")
            let begin = ContinuousClock.now
            try await cause(fault, machines)
            try await machines.namespaces.heal()
            try await restartLost(machines)
            guard let healing = try await waitUntilHealed(within: Self.maximumHealing, machines) else {
                throw Halt(
                    description: "\(Self.maximumHealing) after \(fault) the nodes did not answer: \(await state())")
            }
            outcome.note(fault, healing)
            note("\(machines.overflowCount) overflows so far")
            note("healed in \(healing), \(ContinuousClock.now - begin) after it began")
            if machines.plan.durability == .engine { try await restartLost(machines) }
        }
        try await wait("for the last call") { scores.now.played.count == Self.clientPools }
        outcome.overflows += machines.overflowCount
    }

    private func recovery(of nodes: some Sequence<Int>) -> NetworkRecovery {
        NetworkRecovery(ports: nodes.map { ports[$0] }, isServed: options.server != nil)
    }

    /// Asks again and again until all nodes answer, and starts those again that have ended meanwhile because they had lost their slots;
    /// nil when that takes longer than `limit`.
    private func waitUntilHealed(within limit: Duration, _ machines: Machines) async throws -> Duration? {
        let begin = ContinuousClock.now
        while true {
            let rest = begin + limit - .now
            guard rest > .zero else { return nil }
            if await recovery(of: servers.indices).isHealed(within: min(.seconds(3), rest)) { return .now - begin }
            try await endAtLimit("for all nodes to answer")
            try await restartLost(machines)
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func cause(_ fault: NetworkPlan.Fault, _ machines: Machines) async throws {
        let namespaces = machines.namespaces
        switch fault {
        case .kill(let node, let absence): try await endServer(node, SIGKILL, absence)
        case .stop(let node, let absence): try await endServer(node, SIGTERM, absence)
        case .pause(let node, let time): try await pause(node, time)
        case .cut(let node, let way, let time):
            try await namespaces.cut([machines.nodes[node]], way, machines.engines)
            try await Task.sleep(for: time)
        case .links(let one, let other, let way, let time):
            try await namespaces.cut([machines.nodes[one]], way, [machines.nodes[other]])
            try await Task.sleep(for: time)
            // A link that is silent for 5 s is given up; then all goes through the engine.
            if try await waitUntilHealed(within: .seconds(15), machines) == nil {
                found("with no link between nodes \(one) and \(other) calls were not answered through the engine")
            }
        case .down(let time):
            await machines.killEngine(0)
            try await waitWithoutEngine(time, alive: Array(servers.indices))
            try await startEngineAgain(machines)
        case .start(let node, let time):
            await machines.killEngine(0)
            guard let old = servers[node] else { return }
            servers[node] = nil
            old.kill()
            _ = await eventually(within: .seconds(20)) { !old.isRunning }
            var new = try machines.startNode(node)
            // `trebuchet serve` ends without an engine, and its operator restarts it.
            if options.server == nil { servers[node] = new }
            try await waitWithoutEngine(time, alive: servers.indices.filter { $0 != node })
            try await startEngineAgain(machines)
            try await wait("for node \(node), which was started without an engine, to listen") {
                if options.server != nil, !new.isRunning { new = try machines.startNode(node) }
                return new.isListening
            }
            servers[node] = new
        case .slow(let node, let standsStill, let time):
            if standsStill { return try await pause(node, min(time, .milliseconds(1_600))) }
            try await namespaces.slow(machines.nodes[node])
            try await Task.sleep(for: time)
        case .stall(let time): try await machines.stallEngine(0, for: time)
        case .restart: try await restart(machines)
        case .restore(let time): try await restore(after: time, machines)
        case .scale(let nodes):
            for node in nodes { try await stopNode(node) }
            for node in nodes { try await startServer(node) }
        case .split(let sentinel, let time): try await split(sentinel, time, machines)
        case .failover(let failover): try await failOver(failover, machines)
        case .flush: try await flush(machines)
        }
    }

    private func pause(_ node: Int, _ time: Duration) async throws {
        guard let pid = servers[node]?.pid else { return }
        Glibc.kill(pid, SIGSTOP)
        try await Task.sleep(for: time)
        Glibc.kill(pid, SIGCONT)
    }

    private func startEngineAgain(_ machines: Machines) async throws {
        try machines.startEngine(0, follows: false)
        try await wait("for the engine") { machines.isReady }
    }

    /// No engine for a while. Now and then, once in a seed, for so long that all leases are over: no call is answered then.
    private func waitWithoutEngine(_ time: Duration, alive: [Int]) async throws {
        let begin = ContinuousClock.now
        if time > .seconds(5), outcome.slowestRefusal == .zero {
            try await Task.sleep(for: leasesOver)
            let (answers, took) = await recovery(of: alive).ask(within: .seconds(20))
            if let wrong = answers.first(where: { $0.error?.code != .unavailable && $0.error?.code != .timeout }) {
                found(
                    "\(leasesOver) after the engine had gone a call ended with \(wrong) in \(took), not with unavailable or timeout"
                )
            }
            outcome.slowestRefusal = max(outcome.slowestRefusal, took)
        }
        try await Task.sleep(until: begin + time)
    }

    private func stopNode(_ node: Int) async throws {
        let begin = ContinuousClock.now
        try await stopServer(node, SIGTERM)
        note("node \(node) was stopped in \(ContinuousClock.now - begin)")
    }

    private func restart(_ machines: Machines) async throws {
        for node in servers.indices { try await stopNode(node) }
        try await machines.stopEngine(0)
        try await startEngineAgain(machines)
        for node in servers.indices { try await startServer(node) }
    }

    /// Puts the engine's data of some time ago back, as Cluster.md says.
    private func restore(after time: Duration, _ machines: Machines) async throws {
        let begin = ContinuousClock.now
        try await machines.backUp()
        try await Task.sleep(for: time)
        for node in servers.indices { try await stopNode(node) }
        try await machines.stopEngine(0)
        losses.append(begin...(.now + Self.latestAnswer))
        try await machines.restoreEngine { try await self.wait($0, until: $1) }
        for node in servers.indices { try await startServer(node) }
        if let (number, server) = servers.enumerated().first(where: { $0.element?.ownsNothing == true }) {
            found(
                "after a restore node \(number) says that the engine lost something: \(server?.lines.suffix(5) ?? [])")
        }
    }

    // MARK: Failovers

    /// Leaves one sentinel with the old primary, which still accepts writes. Nodes have to leave that primary all the same.
    private func split(_ sentinel: Int, _ time: Duration, _ machines: Machines) async throws {
        let (old, namespaces) = (machines.primary, machines.namespaces)
        let begin = ContinuousClock.now - .seconds(1)
        let others = machines.sentinels.enumerated().filter { $0.offset != sentinel }.map(\.element)
        try await namespaces.cut(
            [machines.engines[old], machines.sentinels[sentinel]], .both, others + [machines.engines[1 - old]])
        try await wait("for another primary after a split") { try await machines.hasChanged(from: old) }
        plannedFailovers.append(begin...ContinuousClock.now)
        losses.append(begin...(ContinuousClock.now + Self.slowestToLeaveSplit))
        try await Task.sleep(for: time)
        try await namespaces.heal()
        if machines.plan.durability == .engine { try await restartLost(machines) }
        try await wait("for the old primary to follow after a split") { try await machines.isFollowed() }
    }

    private func failOver(_ failover: NetworkPlan.Failover, _ machines: Machines) async throws {
        let (old, namespaces) = (machines.primary, machines.namespaces)
        let (primary, replica) = ([machines.engines[old]], [machines.engines[1 - old]])
        // Replication is a moment late at any time.
        let begin = ContinuousClock.now - .seconds(1)
        try await namespaces.cut(primary, failover.way, replica)
        if let node = failover.killed { try await endServer(node, SIGKILL, .zero) }
        try await Task.sleep(for: failover.lead)
        switch failover.loss {
        case .killed: await machines.killEngine(old)
        case .separatePrimary: try await namespaces.cut(primary, .both, machines.sentinels + replica)
        case .alone: try await namespaces.cut(primary, .both, machines.sentinels + replica + machines.nodes)
        }
        try await wait("for another primary after \(failover)") { try await machines.hasChanged(from: old) }
        let changed = ContinuousClock.now
        plannedFailovers.append(begin...changed)
        note("another primary")
        try await Task.sleep(for: failover.absence)
        try await namespaces.heal()
        note("all hosts connected")
        if failover.loss == .killed { try machines.startEngine(old, follows: !failover.isUnaware) }
        losses.append(begin...(changed + Self.slowestToLeave))
        // `.replicated` writes nothing before; the other mode continues meanwhile.
        if machines.plan.durability == .engine {
            try await restartLost(machines)
            note("nodes without slots restarted")
            if try await waitUntilHealed(within: Self.maximumHealing, machines) == nil {
                found(
                    "\(Self.maximumHealing) after \(failover) the nodes did not answer over the new primary: \(await state())"
                )
            }
        }
        note("waiting for the old primary to follow")
        try await wait("for the old primary to follow after \(failover)") { try await machines.isFollowed() }
    }

    /// Allows losses where sentinels replaced a primary that no fault stopped, as they do on a busy machine: with durability `.engine`
    /// the next primary may lack everything since the last known replication.
    func allowLossesOfUnplannedFailovers(_ machines: Machines) {
        for failover in machines.sentinelLog.failovers
        where !plannedFailovers.contains(where: { $0.contains(failover.time) }) {
            outcome.unplannedFailovers += 1
            let begin = max(start, min(machines.lastReplicated(before: failover.time), failover.time) - .seconds(1))
            note(
                "sentinels made \(failover.primary) the primary without a fault, \(failover.time - start) after the start"
            )
            losses.append(begin...(failover.time + Self.slowestToLeave))
        }
    }

    private func flush(_ machines: Machines) async throws {
        let begin = ContinuousClock.now
        try await machines.flush()
        for (number, server) in servers.enumerated() {
            guard await eventually(within: .seconds(10), { server?.ownsNothing == true }) else {
                found(
                    "10 s after FLUSHALL node \(number) had not said that it owns nothing: \(server?.lines.suffix(5) ?? [])"
                )
                continue
            }
        }
        outcome.slowestToNotice = max(outcome.slowestToNotice, .now - begin)
        for (number, server) in servers.enumerated() where server?.ownsNothing == true {
            guard await eventually(within: .seconds(15), { server?.isRunning != true }) else {
                found(
                    "15 s after node \(number) said that it owns nothing it still ran: \(server?.lines.suffix(5) ?? [])"
                )
                continue
            }
        }
        for number in servers.indices { try await endServer(number, SIGKILL, .zero) }
        losses.append(start...(.now + Self.slowestToLeave))
    }

    /// Restarts the nodes that own nothing permanently because the engine has lost their data.
    private func restartLost(_ machines: Machines) async throws {
        for (number, server) in servers.enumerated() where server?.ownsNothing == true {
            outcome.lostNodes += 1
            if strictness != .mayLose {
                found("node \(number) says that the engine lost something: \(server?.lines.suffix(5) ?? [])")
            }
            try await endServer(number, SIGKILL, .zero)
        }
    }

    private func state() async -> String {
        let answers = await recovery(of: servers.indices).ask(within: .seconds(5)).answers
        let lines = servers.enumerated().map { "\n    node \($0): \($1?.lines.suffix(12) ?? [])" }.joined()
        return "\(answers), \(network?.overflowCount ?? 0) overflows of Redis\(lines)"
    }

    var strictness: Strictness { network?.plan.strictness ?? .usual }

    /// The last lines in the logs of all nodes, also of those that have ended.
    var nodeLogs: String {
        startedServers.map { number, server in
            let lines = server.lines.filter { $0.hasPrefix("log: ") }.suffix(12)
            return "\n    node \(number):" + lines.map { "\n        \($0)" }.joined()
        }.joined()
    }

    private func note(_ text: String) {
        if options.isVerbose { print("    \(ContinuousClock.now - start): \(text)") }
    }

    /// Whether a call that was acknowledged at that time may be lost.
    func mayBeLost(_ call: Int) -> Bool {
        guard network?.plan.mayLose == true, let time = scores.now.acknowledgedAt[call] else { return false }
        return losses.contains { $0.contains(time) }
    }
}

extension ChildProgram {
    /// A node that has joined.
    var isListening: Bool { lines.contains { $0 == "listening" || $0.hasPrefix("trebuchet serves ") } }
    /// Whether the engine of the node has lost its data.
    var ownsNothing: Bool { lines.contains { $0.contains("has lost all its slots") } }
}
