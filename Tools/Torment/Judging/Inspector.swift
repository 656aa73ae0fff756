import Foundation
import TestSupport
import Trebuchet
import TrebuchetCLI

/// Checks a server when its clients are quiet, and when they have gone. It repeats its checks until all are passed, and reports a finding
/// when that takes too long.
struct Inspector {
    let daemon: Daemon
    /// The levels before the hostile clients.
    let before: Daemon.Levels
    /// The maximum time to come to rest.
    var patience = Duration.seconds(15)

    init(_ daemon: Daemon, before: Daemon.Levels) {
        self.daemon = daemon
        self.before = before
    }

    /// With open, silent connections: the server uses no processor time, and has no in-flight calls, except those that wait until
    /// their client reads.
    func whileStill() async -> Finding? {
        let deadline = ContinuousClock.now + patience
        var share = 0.0
        var left: [String] = []
        repeat {
            if let end = daemon.program.end { return died(end) }
            share = await processorShare()
            do {
                let report = try await daemon.levels().report
                let calls = report.counters.callsUnderWay - report.counters.callsBehindUnreadResponses
                left = Self.excess([
                    ("calls", calls, before.report.counters.callsUnderWay),
                    ("waiting", report.counters.callsWaiting, before.report.counters.callsWaiting),
                ])
            } catch {
                return await noAnswer(error)
            }
            if share < 0.3, left.isEmpty { return nil }
        } while ContinuousClock.now < deadline
        guard left.isEmpty else {
            return .leftover(
                Self.names(left),
                "\(daemon.name) has \(left.joined(separator: ", ")) without requests:\(await daemon.callsInFlight())")
        }
        return .busy("\(daemon.name) takes \(Int(share * 100)) % of a core without requests")
    }

    /// Without hostile connections: nothing of them remains.
    func whenGone() async -> Finding? {
        let deadline = ContinuousClock.now + patience + .seconds(10)
        var left: [String] = []
        while true {
            if let end = daemon.program.end { return died(end) }
            do {
                left = differences(try await daemon.levels())
            } catch {
                return await noAnswer(error)
            }
            if left.isEmpty { return nil }
            guard ContinuousClock.now < deadline else { break }
            try? await Task.sleep(for: .milliseconds(50))
        }
        return .leftover(
            Self.names(left),
            "all hostile clients are disconnected, and \(daemon.name) still has \(left.joined(separator: ", ")); its descriptors: \(daemon.program.descriptors)"
        )
    }

    /// The increase of resident KiB after the warm-up that is no finding, where a tenth is less.
    var memorySlack = 0

    /// More than a tenth above `base`.
    func memory(above base: Daemon.Memory) async -> Finding? {
        var now = base
        let deadline = ContinuousClock.now + patience
        repeat {
            if let end = daemon.program.end { return died(end) }
            do { now = try await daemon.memory() } catch { return await noAnswer(error) }
            if excessMemory(now, above: base) == nil { return nil }
            try? await Task.sleep(for: .milliseconds(250))
        } while ContinuousClock.now < deadline
        return excessMemory(now, above: base)
    }

    func excessMemory(_ now: Daemon.Memory, above base: Daemon.Memory) -> Finding? {
        if now.isNear(base, slack: memorySlack) { return nil }
        return .memory(
            "\(daemon.name) holds \(now); after the warm-up it was \(base), a larger increase than allowed")
    }

    private func differences(_ now: Daemon.Levels) -> [String] {
        let (now, before, open, atFirst) = (now.report, before.report, now.descriptors, before.descriptors)
        return Self.excess([
            ("connections", now.counters.connections, before.counters.connections),
            ("calls", now.counters.callsUnderWay, before.counters.callsUnderWay),
            ("waiting", now.counters.callsWaiting, before.counters.callsWaiting),
            ("tasks", now.tasks, before.tasks),
            ("activations", now.counters.activations, before.counters.activations),
            ("streams", now.counters.streams, before.counters.streams),
            ("broadcasters", now.counters.broadcasters, before.counters.broadcasters),
            (
                "actors (\(Set(now.actors).subtracting(before.actors).sorted().joined(separator: ", ")))",
                now.counters.actorsOnDemand, before.counters.actorsOnDemand
            ),
            ("timers", now.counters.timers, before.counters.timers),
            ("answers", now.counters.recordedResponses, before.counters.recordedResponses),
            ("descriptors", open, atFirst),
        ])
    }

    private static func excess(_ levels: [(name: String, now: Int, before: Int)]) -> [String] {
        levels.filter { $0.now > $0.before }.map { "\($0.name) \($0.now) (\($0.before) before)" }
    }

    private static func names(_ left: [String]) -> [String] { left.map { String($0.prefix { $0 != " " }) } }

    /// The share of one core, over a third of a second.
    private func processorShare() async -> Double {
        let (start, clock) = (daemon.program.processorSeconds, ContinuousClock.now)
        try? await Task.sleep(for: .milliseconds(300))
        return (daemon.program.processorSeconds - start) / ((ContinuousClock.now - clock) / .seconds(1))
    }

    func died(_ end: String) -> Finding {
        // The output after its start.
        let last = daemon.program.lines.dropFirst(3).suffix(3).map { "\n    " + $0.prefix(300) }.joined()
        return .died("\(daemon.name) \(end)\(last)")
    }

    /// A dead server does not answer; its end is noticed a little later.
    private func noAnswer(_ error: any Error) async -> Finding {
        let program = daemon.program
        _ = await eventually(within: .seconds(2)) { !program.isRunning }
        if let end = program.end { return died(end) }
        return .noAnswer("\(daemon.name) does not report its counters: \(error)")
    }
}
