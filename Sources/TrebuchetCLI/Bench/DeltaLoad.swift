import Bytes
import Deltas
import Networking
import TrebuchetWire

/// What one changed element costs in a collection of many: the change, its patch, and applying it; beside the whole value.
struct DeltaLoad {
    private struct Item: Codable, Sendable, Identifiable {
        let id: Int
        var title: String
        var count = 0
    }

    /// Nanoseconds, medians.
    private struct Cost {
        var update: UInt64
        var encode: UInt64
        var apply: UInt64
        var whole: UInt64
    }

    let counts: [Int]
    let rounds: Int

    func run() throws -> BenchReport {
        var report = BenchReport()
        let coder = ValueCoder(version: .v3)
        for count in counts {
            let items = KeyedCollection((0..<count).map { Item(id: $0, title: "element number \($0)") })
            var wholeBytes = 0
            var patchBytes = 0
            let cost = try measure(items, coder, &patchBytes, &wholeBytes)
            report.add("update_ns_\(count)", Int(cost.update))
            report.add("encode_change_ns_\(count)", Int(cost.encode))
            report.add("apply_ns_\(count)", Int(cost.apply))
            report.add("patch_bytes_\(count)", patchBytes)
            report.add("encode_whole_ns_\(count)", Int(cost.whole))
            report.add("whole_bytes_\(count)", wholeBytes)
        }
        return report
    }

    private func measure(
        _ items: KeyedCollection<Item>, _ coder: ValueCoder, _ patchBytes: inout Int, _ wholeBytes: inout Int
    ) throws -> Cost {
        var (server, client) = (items, items)
        var reader = ChangeReader()
        _ = reader.take(from: &server, with: coder)
        var (updates, encodes, applies): ([UInt64], [UInt64], [UInt64]) = ([], [], [])
        var patch = ByteBuffer()
        for round in 0..<rounds {
            // As a stream does, which keeps a version while the next is made.
            let (sent, shown) = (server, client)
            let start = MonotonicClock.now
            server.update(id: round &* 7_919 % items.count) { $0.count = 100_000 + round }
            let updated = MonotonicClock.now
            guard let changes = reader.take(from: &server, with: coder) else {
                preconditionFailure("nothing was taken")
            }
            patch.removeAll()
            changes.write(into: &patch)
            let encoded = MonotonicClock.now
            client = try client.applying(patch.bytes, with: coder)
            let applied = MonotonicClock.now
            precondition(sent.count == shown.count)
            updates.append(updated - start)
            encodes.append(encoded - updated)
            applies.append(applied - encoded)
            patchBytes = max(patchBytes, patch.count)
        }
        var wholes: [UInt64] = []
        for _ in 0..<max(5, min(rounds, 200_000 / items.count)) {
            patch.removeAll()
            let start = MonotonicClock.now
            try coder.encode(server, into: &patch)
            wholes.append(MonotonicClock.now - start)
        }
        wholeBytes = patch.count
        precondition(server.elementsEqual(client) { $0.id == $1.id && $0.count == $1.count })
        return Cost(
            update: Self.median(updates), encode: Self.median(encodes), apply: Self.median(applies),
            whole: Self.median(wholes))
    }

    private static func median(_ values: [UInt64]) -> UInt64 { values.sorted()[values.count / 2] }
}
