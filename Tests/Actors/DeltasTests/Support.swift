import Bytes
import Deltas
import TrebuchetWire

struct Item: Codable, Sendable, Identifiable, Equatable {
    let id: Int
    var title: String
    var isDone = false
}

/// The example of `DeltaRecord`, with a nested record.
struct Board: DeltaRecord, Equatable {
    @DeltaValue var title = ""
    var todos = KeyedCollection<Item>()
    var notes = Notes()

    static let deltaMembers: [DeltaMember<Board>] = [
        DeltaMember("title", \._title), DeltaMember("todos", \.todos), DeltaMember("notes", \.notes),
    ]
}

/// A manual conformance.
struct Notes: DeltaState, Equatable {
    var items = KeyedCollection<Item>()

    private enum CodingKeys: String, CodingKey { case items = "a/b~c \"d\"" }

    mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        changes.append(items.takeChanges(), at: CodingKeys.items.rawValue)
        return changes
    }

    mutating func apply(_ changes: StateChanges) throws {
        try changes.apply(to: &self) { notes, member, changes in
            guard member == CodingKeys.items.rawValue else { return false }
            try notes.items.apply(changes)
            return true
        }
    }
}

let coder = CoderSource()

/// Creates a coder for each use: tests run concurrently.
struct CoderSource: Sendable {
    func encode(_ value: some Encodable) throws -> [UInt8] {
        var buffer = ByteBuffer()
        try ValueCoder().encode(value, into: &buffer)
        return Array(buffer.bytes)
    }

    func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try Array(text.utf8).withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }
}

extension StateChanges {
    /// The text of a patch.
    var patch: [UInt8] {
        var buffer = ByteBuffer()
        write(into: &buffer)
        return Array(buffer.bytes)
    }

    var text: String { String(decoding: patch, as: UTF8.self) }
}

extension DeltaState {
    func applying(_ patch: [UInt8]) throws -> Self {
        try patch.withUnsafeBytes { try applying($0, with: ValueCoder()) }
    }

    func applying(_ patch: String) throws -> Self { try applying(Array(patch.utf8)) }
}

/// True if a patch turns one JSON text into the other, in the patch engine that is independent of collections.
func applies(_ patch: [UInt8], from old: [UInt8], to new: [UInt8]) throws -> Bool {
    let result = try patch.withUnsafeBytes { patch in
        try old.withUnsafeBytes { try JSONPatch.apply(patch, to: $0, maximumBytes: 1 << 24) }
    }
    return result.withUnsafeBytes { result in new.withUnsafeBytes { JSONText.isEqual(result, $0) } }
}
