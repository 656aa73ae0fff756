import Foundation
import NodeSupport
import Platform
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetClient
import TrebuchetCluster

@testable import Trebuchet

/// Random courses of events with servers. Nodes are killed, hand their slots over, join and have clocks that jump, while a client
/// sets and cancels alarms. `TREBUCHET_SEED=17` runs one seed.
@Suite(.timeLimit(.minutes(15)), .serialized) struct AlarmScheduleTests {
    static var seeds: [UInt64] {
        ProcessInfo.processInfo.environment["TREBUCHET_SEED"].flatMap(UInt64.init).map { [$0] } ?? Array(1...20)
    }

    @Test("no alarm is lost or early, and each changes its actor once", arguments: seeds)
    func courses(seed: UInt64) async throws {
        let schedule = AlarmSchedule(seed: seed)
        try await schedule.run()
        #expect(schedule.findings.isEmpty, "seed \(seed)")
    }
}

/// One course from a seed.
final class AlarmSchedule {
    private static let bells = (0..<6).map { "bells/\($0)" }

    private let tower = BellTower()
    private let engine = MemoryEngine()
    private let start = Int64(Date().timeIntervalSince1970 * 1_000)
    private var random: RandomSource
    private var nodes: [Node] = []
    private var born = 0
    /// The true time since the start, in ms, which only the course advances. All clocks of nodes follow it, apart from their jumps.
    private var time: Int64 = 0
    private var ahead: [ObjectIdentifier: Int64] = [:]
    /// The alarms by bell and name, and those that were cancelled.
    private var alarms: [String: [String]] = [:]
    private var cancelled: Set<String> = []
    private(set) var findings: [String] = []

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    private static var settings: ClusterMemberSettings {
        var settings = Node.settings
        settings.roundInterval = .milliseconds(5)
        settings.concurrentHandovers = ClusterSlot.count
        return settings
    }

    func run() async throws {
        for _ in 0..<2 { try await join() }
        var options = Node.options
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        // One node that stays, to which the client is connected.
        let client = try await nodes[0].client(options)
        for _ in 0..<14 { try await step(client) }
        await pass(100_000)
        try await compare(client)
        for node in nodes { await node.stop() }
    }

    private func join() async throws {
        born += 1
        let node = try tower.node("n\(born)", engine, settings: Self.settings)
        ahead[ObjectIdentifier(node)] = 0
        await node.server.shiftAlarmClock(by: .milliseconds(time))
        try await node.start()
        nodes.append(node)
    }

    /// Advances the time of all nodes.
    private func pass(_ milliseconds: Int64) async {
        time += milliseconds
        for node in nodes { await node.server.shiftAlarmClock(by: .milliseconds(milliseconds)) }
    }

    private func step(_ client: TrebuchetClient) async throws {
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<5: try await setAlarm(client)
        case 5:
            guard let bell = alarms.keys.sorted().randomElement(using: &random),
                let alarm = alarms[bell]?.randomElement(using: &random)
            else { return }
            if try await client.resolve(Bell.self, id: bell).cancel(alarm) { cancelled.insert("\(bell) \(alarm)") }
        case 6, 7: await pass(Int64.random(in: 0..<20_000, using: &random))
        case 8:
            // A clock that jumps, and stays there.
            guard let node = nodes.randomElement(using: &random) else { return }
            let next = Int64.random(in: -20_000...20_000, using: &random)
            let before = ahead.updateValue(next, forKey: ObjectIdentifier(node)) ?? 0
            await node.server.shiftAlarmClock(by: .milliseconds(next - before))
        case 9:
            guard nodes.count < 3 else { return }
            try await join()
        case 10:
            guard nodes.count > 1 else { return }
            let node = nodes.remove(at: Int.random(in: 1..<nodes.count, using: &random))
            // Alarms may be due while it dies.
            let dying = Task { try await node.kill() }
            await pass(Int64.random(in: 0..<10_000, using: &random))
            try await dying.value
        default:
            guard nodes.count > 1 else { return }
            let node = nodes.remove(at: Int.random(in: 1..<nodes.count, using: &random))
            let leaving = Task { await node.server.shutdown(drain: .seconds(10)) }
            await pass(Int64.random(in: 0..<10_000, using: &random))
            await leaving.value
        }
    }

    private func setAlarm(_ client: TrebuchetClient) async throws {
        guard let bell = Self.bells.randomElement(using: &random) else { return }
        let due = start + time + Int64.random(in: 0..<40_000, using: &random)
        let alarm = "alarm \(alarms.values.reduce(0) { $0 + $1.count })"
        try await client.resolve(Bell.self, id: bell).set(alarm, at: due, everySeconds: nil)
        alarms[bell, default: []].append(alarm)
    }

    private func compare(_ client: TrebuchetClient) async throws {
        for (bell, alarms) in alarms.sorted(by: { $0.key < $1.key }) {
            let actor = try client.resolve(Bell.self, id: bell)
            let expected = Dictionary(
                uniqueKeysWithValues: alarms.map { ($0, cancelled.contains("\(bell) \($0)") ? 0 : 1) })
            let isEqual = try await eventually(within: .seconds(60)) {
                let counts = try await actor.counts()
                return counts == expected
            }
            if !isEqual { findings.append("\(bell): \(try await actor.counts()) instead of \(expected)") }
        }
        // Longer, for one that is delivered again.
        for (bell, alarms) in alarms {
            let counts = try await client.resolve(Bell.self, id: bell).counts()
            for alarm in alarms where counts[alarm] ?? 0 > 1 { findings.append("\(bell) \(alarm): \(counts)") }
        }
        findings += tower.earlyRings
    }
}
