import Trebuchet
import TrebuchetStore

/// A fault of a store after a power cut.
package enum Finding: Sendable, Equatable, CustomStringConvertible {
    /// The store does not open, or fails.
    case refused(String)
    /// Acknowledged batches of a writer are missing.
    case lost(String)
    /// A batch is present in part.
    case torn(String)
    /// A batch is missing that was acknowledged before a present one began.
    case disordered(String)
    /// Clients would resume in a history that the store does not have.
    case resumed(String)

    package var description: String {
        switch self {
        case .refused(let text), .lost(let text), .torn(let text), .disordered(let text), .resumed(let text):
            text
        }
    }
}

/// Compares the remaining data of a store with its writers' batches and acknowledgements.
struct Judge {
    let plan: Plan
    let durability: SQLiteStore.Durability
    let ledger: [[AcknowledgedWrites.Entry]]
    /// The epochs of each writer's log so far, including earlier checks.
    private(set) var epochs: [Set<String>]

    init(plan: Plan, durability: SQLiteStore.Durability, _ ledger: AcknowledgedWrites) {
        (self.plan, self.durability) = (plan, durability)
        (self.ledger, epochs) = (ledger.entries, ledger.epochs)
    }

    /// - Returns: the findings, and the number of present batches.
    mutating func look(at path: String) async -> (findings: [Finding], batches: Int) {
        do {
            let store = try SQLiteStore(path: path)
            let outcome = try await look(into: store)
            // The store is usable.
            try await store.put([1], StateKey("after", "the cut"))
            await store.close()
            await (try SQLiteStore(path: path)).close()
            return outcome
        } catch {
            return ([.refused("the store fails: \(error)")], 0)
        }
    }

    private mutating func look(into store: SQLiteStore) async throws -> (findings: [Finding], batches: Int) {
        let marks = try await store.list(Plan.marks)
        var findings: [Finding] = []
        var counts: [Int] = []
        for writer in 0..<plan.writers {
            let mark = marks.first { $0.key == Plan.mark(writer) }
            counts.append(mark.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0)
            let begun = ledger[writer].count
            if counts[writer] > begun { findings.append(.torn("writer \(writer) has a batch that was never written")) }
            counts[writer] = min(begun, counts[writer])
        }
        findings += lost(counts) + disordered(counts)
        for writer in 0..<plan.writers {
            let entries = try await store.list(Plan.values, prefix: "\(writer)/", after: nil, limit: 1_000)
            findings += torn(writer, counts[writer], entries)
            let log = plan.log(writer)
            let stored = try await store.readLog(log.key)
            if let stored { findings += resumed(writer, counts[writer], stored) }
            let found = stored.map { found in
                let snapshot = LogSnapshot(epoch: "e", version: found.snapshot.version, bytes: found.snapshot.bytes)
                return StoredLog(snapshot: snapshot, entries: found.entries)
            }
            if found != log.expected(counts[writer]) {
                findings.append(.torn("writer \(writer): its log is not that of \(counts[writer]) batches"))
            }
        }
        if let shared = try await store.get(Plan.shared) {
            let numbers = String(decoding: shared, as: UTF8.self).split(separator: " ").compactMap { Int($0) }
            if numbers.count != 2 || !(1...max(1, counts[numbers[0]])).contains(numbers[1]) {
                findings.append(.torn("the shared values are of batch \(numbers), the rest of which is missing"))
            }
        }
        return (findings, counts.reduce(0, +))
    }

    /// The history may have moved back, so the log must have started another epoch, and no earlier epoch may exceed the log.
    private mutating func resumed(_ writer: Int, _ count: Int, _ log: StoredLog) -> [Finding] {
        var findings: [Finding] = []
        if !epochs[writer].insert(log.snapshot.epoch).inserted {
            findings.append(.resumed("writer \(writer): its log continues an earlier epoch"))
        }
        for incarnation in log.earlierIncarnations where incarnation.lastVersion > count {
            findings.append(
                .resumed(
                    "writer \(writer): an earlier epoch extends to version \(incarnation.lastVersion), and the log has \(count)"
                )
            )
        }
        return findings
    }

    private func lost(_ counts: [Int]) -> [Finding] {
        guard durability == .powerLoss else { return [] }
        return ledger.enumerated().compactMap { writer, entries in
            let acknowledged = entries.count { $0.acknowledged != nil }
            guard counts[writer] < acknowledged else { return nil }
            return .lost(
                "writer \(writer): \(acknowledged) batches were acknowledged, and \(counts[writer]) are present")
        }
    }

    /// Concurrent batches may come in any order; the store's order of others is that of time.
    private func disordered(_ counts: [Int]) -> [Finding] {
        let lastBegun = zip(ledger, counts).map { $1 > 0 ? $0[$1 - 1].begun : 0 }.max() ?? 0
        return zip(ledger, counts).enumerated().compactMap { writer, batches in
            let (entries, count) = batches
            guard count < entries.count, let acknowledged = entries[count].acknowledged, acknowledged < lastBegun else {
                return nil
            }
            return .disordered(
                "batch \(count + 1) of writer \(writer) is missing, and a later one is present")
        }
    }

    /// The writer's values must be those of its first batches.
    private func torn(_ writer: Int, _ count: Int, _ entries: [StateEntry]) -> [Finding] {
        var expected: [StateKey: Batch.Write] = [:]
        for number in 0..<count {
            for write in plan.batch(writer, number + 1).writes { expected[write.key] = write.size == nil ? nil : write }
        }
        let name = "writer \(writer), \(count) batches"
        var findings: [Finding] = entries.compactMap { entry in
            guard let write = expected.removeValue(forKey: entry.key) else {
                return .torn("\(name): \(entry.key) is present unexpectedly")
            }
            return write.value == entry.value ? nil : .torn("\(name): \(entry.key) has the value of another batch")
        }
        findings += expected.keys.sorted().map { .torn("\(name): \($0) is missing") }
        return findings
    }
}
