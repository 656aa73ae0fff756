import Bytes
import Deltas
import Platform
import TrebuchetWire

/// Measures one changed element of a keyed collection without a network: the change, its patch, and applying it. The baseline
/// is encoding the whole value.
struct DeltaSteps {
    private let coder = ValueCoder()
    private var server: KeyedCollection<DeltaItem>
    private var client: KeyedCollection<DeltaItem>
    private var reader = ChangeReader()
    private var round = 0
    /// Nanoseconds, one for each change.
    private(set) var updates: [Int] = []
    private(set) var encodes: [Int] = []
    private(set) var applies: [Int] = []
    private(set) var patchBytes = 0

    init(count: Int) {
        server = KeyedCollection(DeltaItem.items(count))
        client = server
        _ = reader.take(from: &server, with: coder)
    }

    mutating func run(_ rounds: Int) throws {
        for _ in 0..<rounds {
            round += 1
            // Retain the previous version, as a stream does while the next one is created.
            let (sent, shown) = (server, client)
            var patch = ByteBuffer()
            let start = MonotonicClock.now
            server.update(id: round &* 7_919 % server.count) { $0.count = round }
            let updated = MonotonicClock.now
            guard let changes = reader.take(from: &server, with: coder) else {
                preconditionFailure("no value was received")
            }
            changes.write(into: &patch)
            let encoded = MonotonicClock.now
            client = try client.applying(patch.bytes, with: coder)
            let applied = MonotonicClock.now
            precondition(sent.count == shown.count)
            updates.append(Int(updated - start))
            encodes.append(Int(encoded - updated))
            applies.append(Int(applied - encoded))
            patchBytes = max(patchBytes, patch.count)
        }
        precondition(server.elementsEqual(client) { $0.id == $1.id && $0.count == $1.count })
    }

    /// Returns the time in nanoseconds and the size in bytes of encoding the whole value.
    func whole() throws -> (time: Int, bytes: Int) {
        var buffer = ByteBuffer()
        var times: [Int] = []
        for _ in 0..<5 {
            buffer.removeAll()
            let start = MonotonicClock.now
            try coder.encode(server, into: &buffer)
            times.append(Int(MonotonicClock.now - start))
        }
        return (times.median, buffer.count)
    }
}
