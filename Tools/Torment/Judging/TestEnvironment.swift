import Synchronization
import TestSupport

/// Tests whether a schedule shows a finding, with dedicated servers, and searches for a smaller one that does.
final class TestEnvironment {
    private let options: Options
    private let finding: Finding
    private let deadline: ContinuousClock.Instant
    private(set) var experiments = 0

    init(_ options: Options, _ finding: Finding) {
        self.options = options
        self.finding = finding
        deadline = ContinuousClock.now + .seconds(options.shrinkSeconds)
    }

    private var hasTime: Bool { ContinuousClock.now < deadline }

    /// Runs a schedule repeatedly.
    ///
    /// - Parameter wanted: the expected finding; others are then not awaited. Nil for any finding.
    /// - Returns: the first finding of any kind.
    static func run(
        _ schedule: Schedule, repeats: Int, _ options: Options, wanted: Finding? = nil
    ) async throws -> Finding? {
        let lines = Set(schedule.scenarios.map(\.line))
        var options = options
        // The machine has no other work, and there are many runs.
        if wanted != nil { options.patience = min(options.patience, .seconds(6)) }
        var attack = try await AttackRun(options, lines: lines)
        attack.patience = .seconds(wanted == nil ? 12 : 5)
        var base: [Daemon.Memory]?
        var finding: Finding?
        // Memory reaches its level once all one-time allocations are made.
        for count in repeats > 4 ? [2, repeats - 2] : [repeats] {
            let left = Mutex(Array(repeating: schedule.scenarios, count: count).flatMap { $0 }[...])
            let outcome = await attack.pool.run { left.withLock { $0.popFirst() } }
            finding = await attack.judge(outcome, wanted: wanted)
            if finding != nil { break }
            if base == nil { base = try? await attack.memory() }
        }
        if finding == nil, wanted?.isDeath ?? true {
            // Waits for scheduled work: time limits of closing connections.
            let current = attack
            _ = await eventually(within: .seconds(7)) { current.death != nil }
            finding = attack.death
        }
        if finding == nil, wanted?.isMemory ?? true, repeats > 4, let base, !options.isSanitized {
            finding = await attack.memory(above: base)
        }
        await attack.stop()
        return finding
    }

    /// True if the finding occurs again.
    private func shows(_ scenarios: [Scenario], repeats: Int) async -> Bool {
        guard !scenarios.isEmpty else { return false }
        experiments += 1
        var again: Finding?
        do {
            again = try await Self.run(Schedule(scenarios), repeats: repeats, options, wanted: finding)
        } catch {
            print("  an experiment failed: \(error)")
        }
        return again.map { $0.isLike(finding) } ?? false
    }

    /// The smallest schedule that still shows the finding; nil when it does not occur again.
    ///
    /// - Parameter suspect: the scenario that showed it, if known.
    func smallest(of scenarios: [Scenario], suspect: Scenario? = nil) async -> Schedule? {
        if let suspect, await shows([suspect], repeats: options.repeats) {
            return Schedule(await withFewerSteps([suspect]))
        }
        // Few repeats of many scenarios are worth as much as many repeats of few. Memory is checked between repeats.
        let least = finding.isMemory ? 8 : 1
        func repeats(_ count: Int) -> Int { max(least, min(options.repeats, 400 / max(1, count))) }
        var current = scenarios
        guard await shows(current, repeats: repeats(current.count)) else { return nil }
        // Halves, then quarters, and so on: the later ones first, since they are nearer to the finding.
        var parts = 2
        while current.count > 1, hasTime {
            let size = (current.count + parts - 1) / parts
            var isSmaller = false
            for start in stride(from: 0, to: current.count, by: size).reversed() where hasTime {
                let part = Array(current[start..<min(start + size, current.count)])
                guard part.count < current.count, await shows(part, repeats: repeats(part.count)) else { continue }
                (current, parts, isSmaller) = (part, 2, true)
                break
            }
            if isSmaller { continue }
            // Or all but one of the parts.
            if parts > 2 {
                for start in stride(from: 0, to: current.count, by: size) where hasTime {
                    let rest = Array(current[..<start] + current[min(start + size, current.count)...])
                    guard await shows(rest, repeats: repeats(rest.count)) else { continue }
                    (current, isSmaller) = (rest, true)
                    break
                }
            }
            if isSmaller { continue }
            if size == 1 { break }
            parts = min(parts * 2, current.count)
        }
        return Schedule(await withFewerSteps(current))
    }

    private func withFewerSteps(_ scenarios: [Scenario]) async -> [Scenario] {
        var current = scenarios
        var isSmaller = true
        while isSmaller, hasTime {
            isSmaller = false
            for scenario in current.indices {
                for step in current[scenario].steps.indices.reversed() where hasTime {
                    guard step < current[scenario].steps.count else { continue }
                    var less = current
                    less[scenario].steps.remove(at: step)
                    if await shows(less, repeats: options.repeats) {
                        (current, isSmaller) = (less, true)
                        continue
                    }
                    while hasTime, let halved = current[scenario].steps[step].halved {
                        less = current
                        less[scenario].steps[step] = halved
                        guard await shows(less, repeats: options.repeats) else { break }
                        (current, isSmaller) = (less, true)
                    }
                }
            }
        }
        return current
    }
}
