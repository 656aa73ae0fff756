internal import Bytes

/// A hash table for the names of a large object, by their bytes.
///
/// Names may come from a peer, so the hash has random keys. `ByteKeyTable` also has them, but copies its keys, which is too slow
/// here.
struct NameTable {
    /// The slots: a position and a part of the hash of its name, or -1 for an empty slot. Open addressing; at most half of them
    /// are used.
    private var slots: [(hash: UInt32, index: Int32)]
    private let seeds: (UInt64, UInt64)

    init(capacity: Int) {
        var count = 16
        while count < 2 * capacity { count *= 2 }
        slots = Array(repeating: (0, -1), count: count)
        seeds = Self.seeds
    }

    private static let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max) | 1)

    /// Adds a name unless it is present. Returns the position of the name in the table. `name` returns the bytes of an added
    /// name.
    mutating func insert(_ bytes: UnsafeRawBufferPointer, _ index: Int, _ name: (Int) -> UnsafeRawBufferPointer) -> Int
    {
        let hash = hash(bytes)
        let slot = slot(of: bytes, hash, name)
        if slots[slot].index >= 0 { return Int(slots[slot].index) }
        slots[slot] = (UInt32(truncatingIfNeeded: hash >> 32), Int32(truncatingIfNeeded: index))
        return index
    }

    /// Returns the position of a name, or nil.
    func index(of bytes: UnsafeRawBufferPointer, _ name: (Int) -> UnsafeRawBufferPointer) -> Int? {
        let index = slots[slot(of: bytes, hash(bytes), name)].index
        return index < 0 ? nil : Int(index)
    }

    private func slot(of bytes: UnsafeRawBufferPointer, _ hash: UInt64, _ name: (Int) -> UnsafeRawBufferPointer) -> Int
    {
        let part = UInt32(truncatingIfNeeded: hash >> 32)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot].index >= 0 {
            if slots[slot].hash == part, Self.isEqual(name(Int(slots[slot].index)), bytes) { break }
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = seeds.0 ^ UInt64(bytes.count)
        var at = 0
        while at + 8 <= bytes.count {
            state = Self.mixed(state ^ bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self), seeds.1)
            at += 8
        }
        var rest: UInt64 = 0
        while at < bytes.count {
            rest = rest << 8 | UInt64(bytes[at])
            at += 1
        }
        return Self.mixed(Self.mixed(state ^ rest, seeds.1), seeds.0 | 1)
    }

    private static func mixed(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let product = one.multipliedFullWidth(by: other)
        return product.high ^ product.low
    }

    @inline(__always)
    static func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        one.count == other.count && one.elementsEqual(other)
    }

    /// Returns a fast hash for the names of small objects. It covers only the length, the start and the end, so equal hashes
    /// require a comparison.
    @inline(__always)
    static func quickHash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        var word: UInt64
        if name.count >= 8 {
            word = name.loadUnaligned(as: UInt64.self)
            word ^= name.loadUnaligned(fromByteOffset: name.count - 8, as: UInt64.self) &* 0x9E37_79B9_7F4A_7C15
        } else if name.count >= 4 {
            word = UInt64(name.loadUnaligned(as: UInt32.self))
            word |= UInt64(name.loadUnaligned(fromByteOffset: name.count - 4, as: UInt32.self)) << 32
        } else {
            word = 0
            for byte in name { word = word << 8 | UInt64(byte) }
        }
        let product = (word ^ UInt64(name.count) << 56) &* 0xD6E8_FEB8_6659_FD93
        return UInt32(truncatingIfNeeded: product >> 32)
    }
}
