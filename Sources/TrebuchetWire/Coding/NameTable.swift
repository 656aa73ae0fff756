internal import Bytes

/// Finds names of an object among many, by their bytes.
///
/// Names may be a peer's, so the hash has random keys: those of `ByteKeyTable`, which keeps copies of its keys and is too slow here.
struct NameTable {
    /// A place's number and a part of the hash of what is there; -1 when nothing is. Open addressing, at most half of it used.
    private var slots: [(hash: UInt32, place: Int32)]
    private let seeds: (UInt64, UInt64)

    init(capacity: Int) {
        var count = 16
        while count < 2 * capacity { count *= 2 }
        slots = Array(repeating: (0, -1), count: count)
        seeds = Self.seeds
    }

    private static let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max) | 1)

    /// Keeps a name, unless it is there; gives the place of the one that is there then. `name` gives the bytes of a kept one.
    mutating func insert(_ bytes: UnsafeRawBufferPointer, _ place: Int, _ name: (Int) -> UnsafeRawBufferPointer) -> Int
    {
        let hash = hash(bytes)
        let slot = slot(of: bytes, hash, name)
        if slots[slot].place >= 0 { return Int(slots[slot].place) }
        slots[slot] = (UInt32(truncatingIfNeeded: hash >> 32), Int32(truncatingIfNeeded: place))
        return place
    }

    /// The place that was given with the name; nil when the name is not there.
    func place(of bytes: UnsafeRawBufferPointer, _ name: (Int) -> UnsafeRawBufferPointer) -> Int? {
        let place = slots[slot(of: bytes, hash(bytes), name)].place
        return place < 0 ? nil : Int(place)
    }

    private func slot(of bytes: UnsafeRawBufferPointer, _ hash: UInt64, _ name: (Int) -> UnsafeRawBufferPointer) -> Int
    {
        let part = UInt32(truncatingIfNeeded: hash >> 32)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot].place >= 0 {
            if slots[slot].hash == part, Self.isEqual(name(Int(slots[slot].place)), bytes) { break }
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

    /// What tells names of a few members apart: no more than their lengths, beginnings and ends, so equal ones must be compared.
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
