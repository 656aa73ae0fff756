import Trebuchet
import TrebuchetStore

/// What must not be after a power cut.
package enum Finding: Sendable, Equatable, CustomStringConvertible {
    /// The store does not open, or fails.
    case refused(String)
    /// Acknowledged batches of a writer are missing.
    case lost(String)
    /// A batch is there in part.
    case torn(String)
    /// A batch is missing that was acknowledged before one began that is there.
    case disordered(String)
    /// Clients would go on in a history that the store does not have.
    case resumed(String)

    package var description: String {
        switch self {
        case .refused(let text), .lost(let text), .torn(let text), .disordered(let text), .resumed(let text):
            text
        }
    }
}

/// Looks at what is left in a store, and holds it against what its writers did and were told.
struct Judge {
    let plan: Plan
    let durability: SQLiteStore.Durability
    let ledger: [[AcknowledgedWrites.Entry]]
    /// By the writer, the epochs of its log so far, those of earlier looks too.
    private(set) var epochs: [Set<String>]

    init(plan: Plan, durability: SQLiteStore.Durability, _ ledger: AcknowledgedWrites) {
        (self.plan, self.durability) = (plan, durability)
        (self.ledger, epochs) = (ledger.entries, ledger.epochs)
    }

    /// - Returns: what is wrong, and how many batches are there.
    mutating func look(at path: String) async -> (findings: [Finding], batches: Int) {
        do {
            let store = try SQLiteStore(path: path)
            let outcome = try await look(into: store)
            // It can be worked with.
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
            if counts[writer] > begun { findings.append(.torn("writer \(writer) has a batch that it never wrote")) }
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
                findings.append(.torn("what all write is of batch \(numbers), of which nothing else is there"))
            }
        }
        return (findings, counts.reduce(0, +))
    }

    /// The history may have moved back, so that the log must have begun another epoch, and no earlier one may go further than the log.
    private mutating func resumed(_ writer: Int, _ count: Int, _ log: StoredLog) -> [Finding] {
        var findings: [Finding] = []
        if !epochs[writer].insert(log.snapshot.epoch).inserted {
            findings.append(.resumed("writer \(writer): its log goes on in an epoch that it has had"))
        }
        for life in log.earlierIncarnations where life.lastVersion > count {
            findings.append(
                .resumed(
                    "writer \(writer): an earlier epoch leads to version \(life.lastVersion), and the log has \(count)")
            )
        }
        return findings
    }

    private func lost(_ counts: [Int]) -> [Finding] {
        guard durability == .powerLoss else { return [] }
        return ledger.enumerated().compactMap { writer, entries in
            let acknowledged = entries.count { $0.acknowledged != nil }
            guard counts[writer] < acknowledged else { return nil }
            return .lost("writer \(writer) was told of \(acknowledged) batches, and \(counts[writer]) are there")
        }
    }

    /// Of batches under way at once either may have been the first; of others the store's order is that of time.
    private func disordered(_ counts: [Int]) -> [Finding] {
        let lastBegun = zip(ledger, counts).map { $1 > 0 ? $0[$1 - 1].begun : 0 }.max() ?? 0
        return zip(ledger, counts).enumerated().compactMap { writer, batches in
            let (entries, count) = batches
            guard count < entries.count, let told = entries[count].acknowledged, told < lastBegun else { return nil }
            return .disordered(
                "batch \(count + 1) of writer \(writer) is missing, and one that began after it had ended is there")
        }
    }

    /// The writer's values must be those that its first batches make.
    private func torn(_ writer: Int, _ count: Int, _ entries: [StateEntry]) -> [Finding] {
        var expected: [StateKey: Batch.Write] = [:]
        for number in 0..<count {
            for write in plan.batch(writer, number + 1).writes { expected[write.key] = write.size == nil ? nil : write }
        }
        let name = "writer \(writer), \(count) batches"
        var findings: [Finding] = entries.compactMap { entry in
            guard let write = expected.removeValue(forKey: entry.key) else {
                return .torn("\(name): \(entry.key) is there, and should not be")
            }
            return write.value == entry.value ? nil : .torn("\(name): the value of \(entry.key) is another batch's")
        }
        findings += expected.keys.sorted().map { .torn("\(name): \($0) is missing") }
        return findings
    }
}
