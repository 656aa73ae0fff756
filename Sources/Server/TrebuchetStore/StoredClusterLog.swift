internal import Trebuchet
internal import TrebuchetCluster

/// The bounds of a log of `SQLiteEngine`: a value beside its entries, each of which is a value of a separate
/// namespace.
struct StoredClusterLog: Equatable {
    static let heads = "cluster.logs"
    static let snapshots = "cluster.snapshots"
    static let fences = "cluster.fences"

    var top = LogPosition.start
    var snapshot: LogPosition?
    /// The offset of the oldest stored entry, or of the next one.
    var first: UInt64 = 1
    /// The end of the retention of replies, in milliseconds since 1970.
    var repliesUntil: UInt64 = 0
    /// The number of replies so far.
    var replies: UInt64 = 0

    static func entries(of log: ClusterLog) -> String { "cluster.log." + log.id }
    static func replies(of log: ClusterLog) -> String { "cluster.calls." + log.id }

    /// The namespace of the order of replies: the names of their calls, by numbers.
    static func positions(of log: ClusterLog) -> String { "cluster.places." + log.id }

    static func key(_ log: ClusterLog, _ offset: UInt64) -> StateKey { StateKey(entries(of: log), name(offset)) }
    static func position(_ log: ClusterLog, _ number: UInt64) -> StateKey { StateKey(positions(of: log), name(number)) }

    /// Returns a name that sorts in the order of the numbers.
    private static func name(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    var bytes: [UInt8] {
        let position = snapshot ?? .start
        return [top.fence, top.offset, position.fence, position.offset, first, repliesUntil, replies]
            .flatMap { Self.bytes($0) } + [snapshot == nil ? 0 : 1]
    }

    init() {}

    /// Decodes a log; nil for invalid bytes.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 57 else { return nil }
        let numbers = (0..<7).map { Self.number(bytes, at: $0 * 8) }
        top = LogPosition(fence: numbers[0], offset: numbers[1])
        snapshot = bytes[56] == 0 ? nil : LogPosition(fence: numbers[2], offset: numbers[3])
        (first, repliesUntil, replies) = (numbers[4], numbers[5], numbers[6])
    }

    static func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }

    static func number(_ bytes: [UInt8], at offset: Int = 0) -> UInt64 {
        guard bytes.count >= offset + 8 else { return 0 }
        return UInt64(littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) })
    }
}
