import Platform

/// One file of a disk: its durable content, and the writes since.
struct DiskFile: Sendable {
    enum Change: Sendable {
        case write(at: Int, [UInt8])
        case truncate(Int)
    }

    /// The unit of torn writes.
    static let sector = 512

    /// The content at the last sync; nil before the first one, when its name may be lost too.
    private(set) var synced: [UInt8]?
    private(set) var changes: [Change] = []

    mutating func add(_ change: Change) { changes.append(change) }

    mutating func sync() {
        var bytes = synced.take() ?? []
        for change in changes { Self.apply(change, to: &bytes) }
        synced = bytes
        changes = []
    }

    private static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .write(let offset, let new): put(new[...], at: offset, in: &bytes)
        case .truncate(let size): if size < bytes.count { bytes.removeLast(bytes.count - size) }
        }
    }

    private static func put(_ new: ArraySlice<UInt8>, at offset: Int, in bytes: inout [UInt8]) {
        extend(&bytes, to: offset + new.count)
        bytes.withUnsafeMutableBytes { bytes in
            new.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[offset...]).copyMemory(from: $0) }
        }
    }

    /// A file may have its new length before its new content: zeros.
    private static func extend(_ bytes: inout [UInt8], to size: Int) {
        if size > bytes.count { bytes += repeatElement(0, count: size - bytes.count) }
    }

    /// The content after a power cut; nil when the file is missing.
    func remains(_ damage: Damage, _ tally: inout Damage.Tally, using random: inout RandomSource) -> [UInt8]? {
        if synced == nil, !damage.keeps(using: &random) { return nil }
        var bytes = synced ?? []
        for (change, fate) in damage.fates(of: changes, using: &random) {
            tally.count(fate)
            switch (fate, change) {
            case (.whole, _): Self.apply(change, to: &bytes)
            case (.torn, .write(let offset, let new)): Self.tear(new, at: offset, &bytes, using: &random)
            case (.dropped, .write(let offset, let new)):
                if Bool.random(using: &random) { Self.extend(&bytes, to: offset + new.count) }
            case (.torn, .truncate), (.dropped, .truncate): break
            }
        }
        return bytes
    }

    /// Some of its sectors were written.
    private static func tear(
        _ new: [UInt8], at offset: Int, _ bytes: inout [UInt8], using random: inout RandomSource
    ) {
        if Bool.random(using: &random) { extend(&bytes, to: offset + new.count) }
        var begin = 0
        while begin < new.count {
            let end = min(new.count, (offset + begin) / sector * sector + sector - offset)
            if Bool.random(using: &random) { put(new[begin..<end], at: offset + begin, in: &bytes) }
            begin = end
        }
    }
}

/// The effect of a power cut on unsynced writes.
struct Damage: Sendable {
    enum Fate: Sendable { case whole, torn, dropped }

    struct Tally: Sendable {
        var whole = 0
        var torn = 0
        var dropped = 0

        mutating func count(_ fate: Fate) {
            switch fate {
            case .whole: whole += 1
            case .torn: torn += 1
            case .dropped: dropped += 1
            }
        }

        mutating func add(_ other: Tally) {
            whole += other.whole
            torn += other.torn
            dropped += other.dropped
        }
    }

    /// True if all writes up to one moment were done, as by a disk that keeps their order.
    private let keepsOrder: Bool
    /// For other disks, the number of writes in ten that are whole, and torn.
    private let whole: Int
    private let torn: Int

    init(using random: inout RandomSource) {
        keepsOrder = Int.random(in: 0..<4, using: &random) == 0
        whole = [0, 3, 5, 8, 9, 10].randomElement(using: &random)!
        torn = Int.random(in: 0...(10 - whole), using: &random)
    }

    func keeps(using random: inout RandomSource) -> Bool { Int.random(in: 0..<10, using: &random) < max(5, whole) }

    /// The changes in the order in which they reach the disk, with their fates.
    func fates(of changes: [DiskFile.Change], using random: inout RandomSource) -> [(DiskFile.Change, Fate)] {
        if keepsOrder {
            let last = Int.random(in: 0...changes.count, using: &random)
            return changes.enumerated().map { ($1, $0 < last ? .whole : $0 == last ? .torn : .dropped) }
        }
        let order = Bool.random(using: &random) ? changes : changes.shuffled(using: &random)
        return order.map { change in
            let chance = Int.random(in: 0..<10, using: &random)
            return (change, chance < whole ? .whole : chance < whole + torn ? .torn : .dropped)
        }
    }
}
