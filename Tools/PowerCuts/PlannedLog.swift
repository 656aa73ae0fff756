import Platform
import Trebuchet

/// A writer's changes of its log: each batch appends a change, every seventh takes a snapshot with a part from the previous batch, and
/// every thirteenth starts a new epoch, as event logs do after a failed write.
struct PlannedLog: Sendable {
    private static let cycle = 7
    private static let renewal = 13

    let key: StateKey
    private let seed: UInt64

    init(seed: UInt64, writer: Int) {
        key = StateKey("logs", "\(writer)")
        self.seed = seed &* 7_919 &+ UInt64(writer)
    }

    private enum Step { case first, append, part, snapshot, renewal }

    private func step(_ number: Int) -> Step {
        if number == 1 { return .first }
        if number % Self.renewal == 0 { return .renewal }
        switch number % Self.cycle {
        case 5: return .part
        case 6 where (number - 1) % Self.renewal != 0: return .snapshot
        default: return .append
        }
    }

    func writes(_ number: Int) -> [StateWrite] {
        let append = StateWrite.append(entry(number), key)
        switch step(number) {
        case .first: return [.snapshot(first, key)]
        case .append: return [append]
        case .renewal: return [StateWrite(key, .deleteLog), .snapshot(empty(number), key), append]
        case .part: return [append, StateWrite(key, .snapshotPart(part(number), index: 0, number: UInt64(number)))]
        case .snapshot:
            let snapshot = LogSnapshot(epoch: "e", version: UInt64(number - 1), partCount: 1, bytes: end(number - 1))
            return [append, .snapshot(snapshot, key)]
        }
    }

    /// The log after the given number of batches.
    func expected(_ batches: Int) -> StoredLog? {
        guard batches > 0 else { return nil }
        let last = (1...batches).last { [.first, .renewal, .snapshot].contains(step($0)) } ?? 1
        switch step(last) {
        case .renewal: return StoredLog(snapshot: empty(last), entries: (last...batches).map(entry))
        case .snapshot:
            let snapshot = LogSnapshot(epoch: "e", version: UInt64(last - 1), bytes: part(last - 1) + end(last - 1))
            return StoredLog(snapshot: snapshot, entries: (last...batches).map(entry))
        default: return StoredLog(snapshot: first, entries: (1...batches).dropFirst().map(entry))
        }
    }

    /// The initial snapshot of an event log.
    private func empty(_ number: Int) -> LogSnapshot {
        LogSnapshot(epoch: "e", version: UInt64(number - 1), bytes: [])
    }

    private var first: LogSnapshot { LogSnapshot(epoch: "e", version: 1, bytes: bytes(1, 1, upTo: 10_000)) }

    private func entry(_ number: Int) -> LogEntry {
        LogEntry(version: UInt64(number), baseVersion: UInt64(number - 1), bytes: bytes(number, 2, upTo: 300))
    }

    private func part(_ number: Int) -> [UInt8] { bytes(number, 3, upTo: 60_000) }

    private func end(_ number: Int) -> [UInt8] { bytes(number, 4, upTo: 5_000) }

    private func bytes(_ number: Int, _ kind: UInt64, upTo most: Int) -> [UInt8] {
        var random = RandomSource(seed: seed &* 1_000_003 &+ UInt64(number) &* 11 &+ kind)
        return (0..<Int.random(in: 0...most, using: &random)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }
}
