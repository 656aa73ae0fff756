@testable import QStream
import Synchronization

/// A reader that takes a few values in one of several ways, and checks that each is newer than the one before.
struct StressReader: Sendable {
    enum Kind: CaseIterable {
        case chain, diamond, sharedSum, queue, sequence, waiting
    }

    /// The values read so far. A fault stays.
    struct Record {
        fileprivate(set) var count = 0
        fileprivate(set) var fault: String?
        fileprivate var last: Int?
    }

    let kind: Kind
    let wires: StressWires

    /// Leaves after `limit` values, or, for an even `patience`, after that number of turns.
    func read(limit: Int, patience: Int) async -> Record {
        let log = Notes()
        switch kind {
        case .chain:
            let chain = await wires.left.map { $0 }.filter { _ in true }
            await stay(log, limit, patience, await chain.tap { log.note($0) })
        case .diamond:
            let diamond = await wires.left.map { 2 * $0.version }.combineLatest(wires.left)
            let subscription = await diamond.tap { double, sample in
                log.note(sample, isWhole: double == 2 * sample.version)
            }
            await stay(log, limit, patience, subscription)
        case .sharedSum:
            await stay(log, limit, patience, await wires.sum.tap { log.note($0.left + $0.right) })
        case .queue:
            await stay(log, limit, patience, await wires.right.dispatch().tap { log.note($0) })
        case .sequence:
            let task = Task {
                for await sample in await wires.right.asyncStream() {
                    log.note(sample)
                    if log.record.count >= limit { break }
                }
            }
            await end(task, patience)
        case .waiting:
            let task = Task {
                guard let now = await wires.left.get() else { return }
                let goal = now.version + limit
                guard let sample = await wires.left.waitFor(predicate: { $0.version >= goal }) else { return }
                log.note(sample, isWhole: sample.version >= goal)
            }
            await end(task, patience)
        }
        return log.record
    }

    private func stay(_ log: Notes, _ limit: Int, _ patience: Int, _ subscription: AnySubscription) async {
        var turns = 0
        while log.record.count < limit, !patience.isMultiple(of: 2) || turns < patience {
            turns += 1
            await Task.yield()
        }
        subscription.cancel()
    }

    private func end(_ task: Task<Void, Never>, _ patience: Int) async {
        if patience.isMultiple(of: 2) {
            for _ in 0..<patience { await Task.yield() }
            task.cancel()
        }
        await task.value
    }

    private final class Notes: Sendable {
        private let guarded = Mutex(Record())

        var record: Record { guarded.withLock { $0 } }

        func note(_ sample: StressSample, isWhole: Bool = true) {
            note(sample.version, isWhole: isWhole && sample.written.reduce(0, +) == sample.version)
        }

        func note(_ version: Int, isWhole: Bool = true) {
            guarded.withLock { record in
                if record.fault == nil {
                    if let last = record.last, version != last + 1 { record.fault = "\(version) came after \(last)" }
                    if !isWhole { record.fault = "\(version) is torn" }
                }
                record.last = version
                record.count += 1
            }
        }
    }
}
