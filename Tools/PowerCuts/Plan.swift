import Platform
import Trebuchet

/// The writes of a trial, and the time of the power cut, drawn from the seed.
struct Plan: Sendable {
    static let values = "values"
    static let marks = "marks"
    /// Written by all.
    static let shared = StateKey("shared", "last")

    let seed: UInt64
    let writers: Int
    /// The number of batches of each writer, for each time the store is opened.
    let incarnations: [Int]
    let cutAt: Int
    /// In one of three trials the power is cut while pages are moved from the log into the file, which is rare otherwise.
    let cutMove: Int?
    /// For the remaining data.
    private(set) var random: RandomSource

    init(seed: UInt64) {
        self.seed = seed
        var random = RandomSource(seed: seed)
        writers = Int.random(in: 1...6, using: &random)
        incarnations = (0..<6).map { _ in Int.random(in: 1...40, using: &random) }
        // From the first steps of a new store to some megabytes, which SQLite moves from the log into the file repeatedly.
        let step = Int.random(in: 1...(64 << Int.random(in: 0...7, using: &random)), using: &random)
        let isMoving = Int.random(in: 0..<3, using: &random) == 0
        cutAt = isMoving ? .max : step
        cutMove = isMoving ? Int.random(in: 1...120, using: &random) : nil
        self.random = random
    }

    /// The writes of one batch. Batches count from 1.
    func batch(_ writer: Int, _ number: Int) -> Batch { Batch(seed: seed, writer: writer, number: number) }

    func log(_ writer: Int) -> PlannedLog { PlannedLog(seed: seed, writer: writer) }

    static func mark(_ writer: Int) -> StateKey { StateKey(marks, "\(writer)") }
}

/// Atomic writes: some values of the writer, a change of its log, and the number of the batch.
struct Batch: Sendable {
    struct Write: Sendable {
        let key: StateKey
        /// Nil deletes.
        let size: Int?
        /// The seed of the value.
        let seed: UInt64

        var value: [UInt8]? {
            size.map { size in
                var random = RandomSource(seed: seed)
                var bytes = [UInt8](repeating: 0, count: size)
                bytes.withUnsafeMutableBytes { bytes in
                    for word in 0..<size / 8 {
                        bytes.storeBytes(of: random.next(), toByteOffset: 8 * word, as: UInt64.self)
                    }
                    for index in size / 8 * 8..<size { bytes[index] = UInt8(truncatingIfNeeded: random.next()) }
                }
                return bytes
            }
        }
    }

    let writes: [Write]
    private let writer: Int
    private let number: Int
    private let log: PlannedLog

    fileprivate init(seed: UInt64, writer: Int, number: Int) {
        self.writer = writer
        self.number = number
        log = PlannedLog(seed: seed, writer: writer)
        var random = RandomSource(seed: seed &* 1_000_003 &+ UInt64(writer * 100_000 + number))
        writes = (0..<Int.random(in: 1...6, using: &random)).map { _ in
            Write(
                key: StateKey(Plan.values, "\(writer)/\(Int.random(in: 0..<12, using: &random))"),
                size: Self.size(using: &random), seed: random.next())
        }
    }

    private static func size(using random: inout RandomSource) -> Int? {
        switch Int.random(in: 0..<25, using: &random) {
        case 0..<4: nil
        case 4: 0
        case 5..<18: Int.random(in: 1...300, using: &random)
        case 18..<23: Int.random(in: 300...10_000, using: &random)
        case 23: Int.random(in: 10_000...100_000, using: &random)
        default: Int.random(in: 100_000...300_000, using: &random)
        }
    }

    var stateWrites: [StateWrite] {
        writes.map { write in write.value.map { .put($0, write.key) } ?? .delete(write.key) } + [
            .put(Array("\(number)".utf8), Plan.mark(writer)),
            .put(Array("\(writer) \(number)".utf8), Plan.shared),
        ] + log.writes(number)
    }
}
