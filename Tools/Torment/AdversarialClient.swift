import Benchmarks
import Foundation
import TestSupport
import Trebuchet
import TrebuchetCLI

/// A run: rounds of hostile scenarios drawn from the seed, each followed by a check of the servers.
final class AdversarialClient {
    private let options: Options
    private var honest: [any ControlClient] = []
    private let start = ContinuousClock.now
    private let source: ScenarioSource
    private var lastReport = ContinuousClock.now

    init(_ options: Options) {
        self.options = options
        source = ScenarioSource(options)
    }

    private var elapsed: Double { (ContinuousClock.now - start) / .seconds(1) }

    func run() async throws -> Bool {
        print(
            "attacking for \(options.seconds) s with --seed \(options.seed)\(options.isTLS ? " --tls" : ""): "
                + options.families.map(\.rawValue).joined(separator: ", "))
        let attack = try await AttackRun(options, lines: options.lines) { try await self.startControlClients($0) }
        // Covers one-time allocations before the first memory measurement.
        let warmUp = min(120, Double(options.seconds) / 5)
        var base: [Daemon.Memory]?
        var late: [Daemon.Memory]?
        var before: [Scenario] = []
        while elapsed < Double(options.seconds) {
            let (finding, scenarios, suspect) = await runAttack(attack)
            if let finding { return await report(finding, before + scenarios, attack, suspect) }
            before = scenarios
            // Resident memory varies with fragmentation: its level is the minimum of a period.
            let now = try await attack.memory()
            switch elapsed {
            case ..<warmUp: break
            case ..<(2 * warmUp): base = base.map { zip($0, now).map { $0.lowest($1) } } ?? now
            case (Double(options.seconds) - warmUp)...: late = late.map { zip($0, now).map { $0.lowest($1) } } ?? now
            default: break
            }
        }
        if let base = base ?? late {
            let now = zip(try await attack.memory(), late ?? base).map { $0.lowest($1) }
            print(
                "memory: \(zip(base, now).map { "\($0) after the warm-up, \($1) now" }.joined(separator: "; "))"
            )
            if !options.isSanitized, let finding = attack.memory(now, above: base) {
                return await report(finding, before, attack)
            }
        }
        // Waits for scheduled work, such as time limits of closing connections.
        _ = await eventually(within: .seconds(7)) { attack.death != nil }
        if let finding = attack.death ?? slowness { return await report(finding, before, attack) }
        for client in honest { await client.stop() }
        if let finding = await attack.endInOrder() { return await report(finding, before, attack) }
        await attack.stop()
        print("\(source.count) scenarios in \(Int(elapsed)) s without findings; honest clients: \(times)")
        return true
    }

    // MARK: Honest clients

    private func startControlClients(_ daemons: [Daemon]) async throws {
        for daemon in daemons where daemon.output == nil {
            let suffix = daemon.isSecure ? "-tls" : ""
            honest.append(try await SwiftClient(name: "swift\(suffix)", port: daemon.port, isSecure: daemon.isSecure))
            if !daemon.isSecure { honest.append(PageReader(name: "pages", port: daemon.port)) }
            guard let python = options.python else { continue }
            honest.append(
                try await ForeignClient(
                    name: "python\(suffix)", python: python, port: daemon.port, isSecure: daemon.isSecure))
        }
        if let finding = await quiet() { throw ChildProgram.DidNotStart(description: "\(finding)") }
    }

    private func quiet() async -> Finding? {
        for client in honest {
            let isQuiet = await client.pause()
            if let problem = client.ledger.problems.first { return .honest(problem) }
            if !isQuiet { return .honest("\(client.ledger.name): a call did not end in 30 s") }
        }
        return nil
    }

    private var times: String {
        honest.map { client in
            let times = client.ledger.times
            return "\(client.ledger.name) \(times.count) calls, p50 \(Int(times.microseconds(0.5))) µs, "
                + "p99 \(Int(times.microseconds(0.99))) µs, worst \(times.largest / 1_000) µs"
        }.joined(separator: "; ")
    }

    private var slowness: Finding? {
        guard let limit = options.p99 else { return nil }
        for client in honest where client.ledger.times.microseconds(0.99) > Double(limit) * 1_000 {
            return .slow("\(client.ledger.name): the p99 of calls exceeds \(limit) ms: \(times)")
        }
        return nil
    }

    // MARK: A run

    /// Runs hostile clients for some seconds, then checks the idle servers.
    private func runAttack(_ attack: AttackRun) async -> (Finding?, [Scenario], suspect: Scenario?) {
        for client in honest { client.resume() }
        let left = Double(options.seconds) - elapsed
        let source = source
        source.open(until: ContinuousClock.now + .seconds(min(6, max(1, left))))
        let outcome = await attack.pool.run { source.next() }
        let honestFinding = await quiet()
        if let honestFinding {
            for socket in outcome.openSockets { socket.close() }
            _ = await eventually(within: .seconds(2)) { attack.death != nil }
            return (attack.death ?? honestFinding, outcome.scenarios, nil)
        }
        let finding = await attack.judge(outcome)
        if ContinuousClock.now - lastReport > .seconds(9) || finding != nil {
            lastReport = ContinuousClock.now
            let memory = ((try? await attack.memory()) ?? []).map(\.description).joined(separator: ", ")
            print("\(Int(elapsed)) s: \(source.count) scenarios, \(memory); \(times)")
        }
        return (finding, outcome.scenarios, outcome.complaint?.scenario)
    }

    // MARK: Findings

    private func report(_ finding: Finding, _ scenarios: [Scenario], _ attack: AttackRun, _ suspect: Scenario? = nil)
        async
        -> Bool
    {
        print(
            "found after \(Int(elapsed)) s with --seed \(options.seed), in group \(source.group): \(finding)"
        )
        for daemon in attack.daemons {
            let last = daemon.program.lines.dropFirst(3).suffix(12)
            if !last.isEmpty { print("\(daemon.name) printed last:" + last.map { "\n    \($0.prefix(300))" }.joined()) }
        }
        for client in honest { await client.stop() }
        await attack.stop()
        guard options.shrinkSeconds > 0 else { return false }
        let laboratory = TestEnvironment(options, finding)
        print(
            "searching for the smallest schedule of \(scenarios.count) scenarios, for at most \(options.shrinkSeconds) s"
        )
        if let schedule = await laboratory.smallest(of: scenarios, suspect: suspect) {
            print(
                "reproduced; the smallest of \(laboratory.experiments) schedules that show it in \(options.repeats) repeats:"
            )
            print("scripts/stress torment --replay '\(schedule)'")
        } else {
            print("the scenarios since the last check did not show it again")
        }
        return false
    }
}
