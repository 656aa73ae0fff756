import Platform
import Trebuchet

/// What a writer does to its log: each batch appends a change, and every seventh takes a snapshot whose part the batch before
/// has brought.
struct PlannedLog: Sendable {
    private static let cycle = 7

    let key: StateKey
    private let seed: UInt64

    init(seed: UInt64, writer: Int) {
        key = StateKey("logs", "\(writer)")
        self.seed = seed &* 7_919 &+ UInt64(writer)
    }

    func writes(_ number: Int) -> [StateWrite] {
        guard number > 1 else { return [.snapshot(first, key)] }
        let append = StateWrite.append(entry(number), key)
        switch number % Self.cycle {
        case 5: return [append, StateWrite(key, .snapshotPart(part(number), index: 0, number: UInt64(number)))]
        case 6:
            let snapshot = LogSnapshot(epoch: "e", number: UInt64(number - 1), parts: 1, bytes: end(number - 1))
            return [append, .snapshot(snapshot, key)]
        default: return [append]
        }
    }

    /// The log after so many batches.
    func expected(_ batches: Int) -> StoredLog? {
        guard batches > 0 else { return nil }
        guard let last = (1...batches).last(where: { $0 % Self.cycle == 6 }) else {
            return StoredLog(snapshot: first, entries: (1...batches).dropFirst().map(entry))
        }
        let snapshot = LogSnapshot(epoch: "e", number: UInt64(last - 1), bytes: part(last - 1) + end(last - 1))
        return StoredLog(snapshot: snapshot, entries: (last...batches).map(entry))
    }

    private var first: LogSnapshot { LogSnapshot(epoch: "e", number: 1, bytes: bytes(1, 1, upTo: 10_000)) }

    private func entry(_ number: Int) -> LogEntry {
        LogEntry(number: UInt64(number), base: UInt64(number - 1), bytes: bytes(number, 2, upTo: 300))
    }

    private func part(_ number: Int) -> [UInt8] { bytes(number, 3, upTo: 60_000) }

    private func end(_ number: Int) -> [UInt8] { bytes(number, 4, upTo: 5_000) }

    private func bytes(_ number: Int, _ kind: UInt64, upTo most: Int) -> [UInt8] {
        var random = RandomSource(seed: seed &* 1_000_003 &+ UInt64(number) &* 11 &+ kind)
        return (0..<Int.random(in: 0...most, using: &random)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }
}
