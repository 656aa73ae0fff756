import Trebuchet

/// The calls that have run, in their order. It outlives the server.
struct TransferLedger: Codable, Sendable, Equatable {
    var calls: [Int] = []
    var points = 0
    var isClosed = false

    static func points(_ call: Int) -> Int { call % 7 + 1 }

    /// Whether all parts belong to one version.
    var isWhole: Bool { points == calls.reduce(0) { $0 + Self.points($1) } }
    var digest: String { Digest.of("\(calls) \(points) \(isClosed)") }
}

struct Cell: Codable, Sendable, Equatable, Identifiable {
    var id: Int
    var points = 0
}

/// A state that records its changes; it restarts with each life of the game.
struct VersionedBoardState: DeltaRecord {
    @DeltaValue var life = 0
    @DeltaValue var turn = 0
    @DeltaValue var points = 0
    /// Padding of all events of this life.
    @DeltaValue var sentBytes = 0
    @DeltaValue var isClosed = false
    var cells = KeyedCollection<Cell>()

    static let deltaMembers: [DeltaMember<VersionedBoardState>] = [
        DeltaMember("life", \._life), DeltaMember("turn", \._turn), DeltaMember("points", \._points),
        DeltaMember("sentBytes", \._sentBytes), DeltaMember("isClosed", \._isClosed), DeltaMember("cells", \.cells),
    ]

    var isWhole: Bool { points == cells.reduce(0) { $0 + $1.points } }
    var digest: String {
        Digest.of("\(life) \(turn) \(points) \(sentBytes) \(isClosed) \(cells.map { "\($0.id):\($0.points)" })")
    }
}

/// A state each version of which counts.
struct Round: Codable, Sendable, Equatable {
    var life = 0
    var number = 0
    var isLast = false
}

struct Move: Codable, Sendable {
    var life: Int
    /// Counted from 1, without gaps.
    var number: Int
    /// The `@Idempotent` call that sent it; 0 for others.
    var call: Int
    var padding: String
    var isLast: Bool
}

/// The entry of the ledger for call number `turn`.
struct Entry: Codable, Sendable, Equatable {
    var turn: Int
    var call = 0
    var isLast = false
}

enum Digest {
    /// FNV-1a: the same in every process.
    static func of(_ text: String) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }
}
