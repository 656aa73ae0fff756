import NodeSupport
import Platform
import Synchronization
import TestSupport
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// One random course of events from a seed, without servers. Nodes set, cancel and deliver alarms, are killed between any two
/// writes, lose slots without noticing, and have clocks that jump. Responses are lost, and deletions arrive late.
final class AlarmModel {
    /// A node: its access to the coordination store, its leases as it believes, and its clock.
    private final class ModelNode {
        let engineRoute: FaultyEngine
        let store: EngineStore
        let leases: Leases
        var sweep = AlarmSweep(concurrent: 4)
        /// The difference of its clock to the true time.
        var ahead: Int64 = 0

        init(_ engine: MemoryEngine) {
            engineRoute = FaultyEngine(engine)
            let leases = Leases()
            self.leases = leases
            store = EngineStore(engineRoute) { leases[$0] }
        }
    }

    private final class Leases: Sendable {
        private let all = Mutex<[ClusterSlot: SlotLease]>([:])

        subscript(_ slot: ClusterSlot) -> SlotLease? {
            get { all.withLock { $0[slot] } }
            set { all.withLock { $0[slot] = newValue } }
        }
    }

    /// An alarm, whose name is never used again.
    private struct Alarm {
        var due: Int64
        var isSet = false
        var mayBeCancelled = false
        var isCancelled = false
    }

    private static let actors = ["bells/1", "bells/2", "bells/3"]

    private let engine = MemoryEngine()
    private var random: RandomSource
    private var time: Int64 = 1_000_000
    private var nodes: [ModelNode] = []
    private var alarms: [String: Alarm] = [:]
    private var number = 0
    /// The contradictions.
    private(set) var findings: [String] = []
    /// The number of occurrences of each event.
    private(set) var events: [String: Int] = [:]

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    // MARK: The course

    func run() async throws {
        for _ in 0..<2 { nodes.append(ModelNode(engine)) }
        for actor in Self.actors { try await move(actor) }
        for _ in 0..<60 { try await step() }
        try await finish()
    }

    private func step() async throws {
        guard let actor = Self.actors.randomElement(using: &random), let node = nodes.randomElement(using: &random)
        else { return }
        let event: String
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<5:
            event = "set"
            try await setAlarm(actor)
        case 5, 6:
            event = "cancel"
            try await cancel(actor)
        case 7..<11:
            event = "pass"
            time += Int64.random(in: 0..<4_000, using: &random)
        case 11..<14:
            event = "deliver"
            await deliver(node)
        case 14:
            event = "jump"
            node.ahead = Int64.random(in: -5_000...5_000, using: &random)
        case 15:
            event = "move"
            try await move(actor)
        case 16:
            event = "kill"
            let writes = random(4)
            node.engineRoute.set { $0.writesUntilAway = writes }
            await deliver(node)
            if Bool.random(using: &random) { try await setAlarm(actor) }
            try await kill(node)
        case 17:
            event = "lost answers"
            let answers = random(3)
            node.engineRoute.set { $0.losesNextAnswers = answers }
        case 18:
            event = "late deletions"
            node.engineRoute.set { $0.delaysDeletions.toggle() }
        default:
            event = "deletions arrive"
            for node in nodes { try await node.engineRoute.applyDeletions() }
        }
        events[event, default: 0] += 1
    }

    private func random(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    /// Gives the slot of an actor to another node. The previous owner may not notice.
    private func move(_ actor: String) async throws {
        let slot = ClusterSlot(of: actor)
        guard let node = nodes.randomElement(using: &random) else { return }
        if let lease = try await engine.owner(of: slot)?.lease { _ = try await engine.releaseLease(lease) }
        let lease = try await engine.acquire(slot, for: try ClusterNode(name: "n"), duration: .seconds(3_600)).lease
        for other in nodes where other !== node && Bool.random(using: &random) { other.leases[slot] = nil }
        node.leases[slot] = lease
        node.store.alarmRows.didAcquire(slot)
        node.sweep.didWrite(0)
    }

    private func kill(_ node: ModelNode) async throws {
        node.engineRoute.set { $0.isAway = true }
        // What it has sent before may still arrive.
        try await node.engineRoute.applyDeletions()
        nodes.removeAll { $0 === node }
        nodes.append(ModelNode(engine))
        for actor in Self.actors where node.leases[ClusterSlot(of: actor)] != nil { try await move(actor) }
    }

    /// The node that an alarm of an actor is set at: usually its owner.
    private func owner(_ actor: String) -> ModelNode? {
        nodes.shuffled(using: &random).first { $0.leases[ClusterSlot(of: actor)] != nil }
    }

    // MARK: Alarms

    private func setAlarm(_ actor: String) async throws {
        guard let node = owner(actor) else { return }
        number += 1
        let name = "\(actor) \(number)"
        let due = time + Int64.random(in: -500..<6_000, using: &random)
        alarms[name] = Alarm(due: max(due, time + node.ahead))
        let isSet = await change(actor, node) { table, _ in
            table.set(.init(name: name, due: max(due, self.time + node.ahead)))
        }
        if isSet { alarms[name]?.isSet = true }
    }

    private func cancel(_ actor: String) async throws {
        guard let node = owner(actor),
            let name = alarms.keys.sorted().filter({ $0.hasPrefix(actor) }).randomElement(using: &random)
        else { return }
        var wasThere = false
        let isDone = await change(actor, node) { table, _ in wasThere = table.cancel(name) }
        guard wasThere else { return }
        if isDone { alarms[name]?.isCancelled = true } else { alarms[name]?.mayBeCancelled = true }
    }

    /// Reads the alarms of an actor, changes them and writes them, as its activation does.
    ///
    /// - Returns: Whether the write is acknowledged.
    private func change(
        _ actor: String, _ node: ModelNode, row: Int64? = nil,
        _ body: (inout AlarmTable, _ writes: inout [StateWrite]) throws -> Void
    ) async -> Bool {
        let key = AlarmNamespace.key(actor)
        do {
            // As after an activation at a node without any knowledge of the log, or by one that has it.
            let stored = try await node.store.get(key)
            let fence = node.store.ownership(of: actor)
            var rows = try await node.store.values(of: actor, in: AlarmNamespace.times).keys
                .compactMap { AlarmNamespace.parse($0)?.time }
            if let row, !rows.contains(row) { rows.append(row) }
            var table = try stored.map { try AlarmTable($0) } ?? AlarmTable()
            var writes: [StateWrite] = []
            try body(&table, &writes)
            let next = table.nextTime
            writes += rows.filter { $0 != next }.sorted().map { StateWrite.delete(AlarmNamespace.row($0, actor)) }
            writes.append(next == nil ? .delete(key) : .put(table.bytes, key))
            if let next { writes.append(.put([], AlarmNamespace.row(next, actor))) }
            try await node.store.write(
                writes.map { write in
                    var write = write
                    write.ownership = fence
                    return write
                })
            if let next { node.sweep.didWrite(next) }
            return true
        } catch {
            return false
        }
    }

    /// Delivers all alarms that are due by the clock of a node.
    private func deliver(_ node: ModelNode) async {
        for _ in 0..<200 {
            switch node.sweep.next() {
            case .deliver(let row):
                let isDone = await deliver(row, node)
                node.sweep.didDeliver(row, isFailed: !isDone)
            case .read(let after, let limit):
                let now = time + node.ahead
                let page = try? await node.store.alarmRows.rows(after: after, limit: limit, at: now)
                node.sweep.didRead(
                    page?.rows, last: page?.last, isLast: page?.isLast ?? false, isPartial: page?.failure != nil,
                    at: now)
            case .wait(let next):
                guard let next, next <= time + node.ahead else { return }
                node.sweep.resume(at: time + node.ahead)
            case .retry:
                node.sweep.restart()
                return
            case .none: return
            }
        }
        findings.append("the deliveries of a node do not end")
    }

    private func deliver(_ row: AlarmRow, _ node: ModelNode) async -> Bool {
        let now = time + node.ahead
        return await change(row.actor, node, row: row.time) { table, writes in
            for due in table.due(at: now) {
                guard try table.begin(due) else { continue }
                let name = due.alarm.name
                if now < alarms[name]?.due ?? .max { findings.append("\(name) was delivered early") }
                // The change of a state: in the same write as the removal of the alarm.
                writes.append(.put([], StateKey("delivered", name, partition: row.actor)))
                table.end(due)
                table.complete(due, at: now)
            }
        }
    }

    // MARK: The end

    private func finish() async throws {
        for node in nodes { try await node.engineRoute.applyDeletions() }
        let last = ModelNode(engine)
        nodes = [last]
        for actor in Self.actors { try await move(actor) }
        time += 100_000
        await deliver(last)
        for (name, alarm) in alarms.sorted(by: { $0.key < $1.key }) {
            let actor = String(name.prefix { $0 != " " })
            let count = try await deliveries(of: name, actor, last)
            if count > 0, alarm.isCancelled { findings.append("\(name) was delivered although it was cancelled") }
            if count > 1 { findings.append("\(name) was delivered \(count) times") }
            if count == 0, alarm.isSet, !alarm.isCancelled, !alarm.mayBeCancelled { findings.append("\(name) is lost") }
        }
        for actor in Self.actors {
            if try await last.store.get(AlarmNamespace.key(actor)) != nil {
                findings.append("\(actor) has alarms left")
            }
            let table = SlotAlarmRows.table(of: ClusterSlot(of: actor))
            let isEmpty = try await eventually {
                try await engine.rows(of: table, prefix: "", after: nil, limit: 1).rows.isEmpty
            }
            if !isEmpty { findings.append("\(actor) has rows left") }
        }
    }

    /// The number of entries in the log of an actor that deliver an alarm.
    private func deliveries(of name: String, _ actor: String, _ node: ModelNode) async throws -> Int {
        var count = 0
        let log = try await engine.read(ClusterLog(actor), after: nil)
        for entry in log.entries {
            for item in ActorLogEntry.items(entry.payload, of: actor) ?? [] {
                if case .write(let write) = item, write.key.namespace == "delivered", write.key.name == name {
                    count += 1
                }
            }
        }
        return count
    }
}
