#if canImport(Darwin)
    public import Darwin
#else
    public import Glibc
#endif

/// A hash table with byte strings as keys, looked up by bytes in place.
///
/// Actor and method names arrive as a few bytes inside a message. A `Dictionary` would need a `String` for each lookup. Peers can
/// choose names (of virtual actors), so the hash has random keys. Everything is inlinable: a call does two lookups, and
/// unspecialized generic code would dominate their cost.
public struct ByteKeyTable<Value>: ~Copyable {
    /// A slot of the table.
    @usableFromInline
    struct Slot {
        @usableFromInline var hash: UInt64
        /// A copy of the key, owned by the slot. Nil in an empty slot and in a slot whose key was removed.
        @usableFromInline var key: UnsafeMutableRawPointer?
        @usableFromInline var count: Int32
        /// True if a probe continues behind this slot, because it holds or held a key.
        @usableFromInline var wasUsed: Bool
        @usableFromInline var value: Value?

        static var empty: Slot { Slot(hash: 0, key: nil, count: 0, wasUsed: false, value: nil) }
    }

    /// The slots: open addressing with linear probing. Their number is a power of two, and at most half of them are used. They
    /// are behind an owned pointer, so that a lookup does no reference counting.
    @usableFromInline var slots: UnsafeMutableBufferPointer<Slot>
    /// The random hash keys of the process, copied here so that reading them is cheap.
    @usableFromInline let seed: UInt64
    @usableFromInline let multiplier: UInt64
    private var usedSlots = 0
    /// The number of keys.
    public private(set) var count = 0

    /// Creates an empty table.
    public init() {
        slots = UnsafeMutableBufferPointer(start: nil, count: 0)
        seed = ByteKeySeed.seed
        multiplier = ByteKeySeed.multiplier
    }

    deinit {
        for slot in slots { slot.key?.deallocate() }
        slots.deinitialize()
        slots.deallocate()
    }

    /// The value of `key`, or nil.
    @inlinable
    public subscript(key: UnsafeRawBufferPointer) -> Value? {
        let slot = self.slotIndex(of: key, hash(key))
        return slot < 0 ? nil : slots[slot].value
    }

    /// The value of the UTF-8 bytes of `key`. Setting nil removes the key.
    @inlinable
    public subscript(key: String) -> Value? {
        get {
            var key = key
            return key.withUTF8 { self[UnsafeRawBufferPointer($0)] }
        }
        set {
            var key = key
            key.withUTF8 { set(UnsafeRawBufferPointer($0), newValue) }
        }
    }

    /// Returns the slot index of the key, or -1.
    @inlinable
    @inline(__always)
    func slotIndex(of key: UnsafeRawBufferPointer, _ hash: UInt64) -> Int {
        guard !slots.isEmpty else { return -1 }
        let mask = slots.count &- 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while true {
            guard slots[slot].wasUsed else { return -1 }
            if slots[slot].hash == hash, Int(slots[slot].count) == key.count, let own = slots[slot].key,
                key.isEmpty || memcmp(own, key.baseAddress!, key.count) == 0
            {
                return slot
            }
            slot = (slot &+ 1) & mask
        }
    }

    @usableFromInline
    mutating func set(_ key: UnsafeRawBufferPointer, _ value: Value?) {
        let hash = self.hash(key)
        let slot = self.slotIndex(of: key, hash)
        if slot >= 0 {
            slots[slot].value = value
            guard value == nil else { return }
            slots[slot].key?.deallocate()
            slots[slot].key = nil
            count -= 1
        } else if let value {
            if (usedSlots + 1) * 2 > slots.count { rebuild() }
            let own = UnsafeMutableRawPointer.allocate(byteCount: max(1, key.count), alignment: 1)
            if let bytes = key.baseAddress { own.copyMemory(from: bytes, byteCount: key.count) }
            insert(Slot(hash: hash, key: own, count: Int32(key.count), wasUsed: true, value: value))
            count += 1
        }
    }

    /// Moves all entries to a table with free slots for as many again, and drops the slots of removed keys.
    private mutating func rebuild() {
        let old = slots
        var size = 8
        while size < (count + 1) * 4 { size *= 2 }
        slots = .allocate(capacity: size)
        slots.initialize(repeating: .empty)
        usedSlots = 0
        for slot in old where slot.key != nil { insert(slot) }
        old.deinitialize()
        old.deallocate()
    }

    private mutating func insert(_ slot: Slot) {
        let mask = slots.count - 1
        var at = Int(truncatingIfNeeded: slot.hash) & mask
        while slots[at].wasUsed { at = (at + 1) & mask }
        slots[at] = slot
        usedSlots += 1
    }

    /// Hashes words of eight bytes: each is multiplied with a random key to 128 bits, which are folded into 64 (as in wyhash).
    /// This is fast, and a peer without the keys cannot construct collisions.
    @inlinable
    @inline(__always)
    func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        let count = key.count
        var state = seed
        var (first, last): (UInt64, UInt64) = (0, 0)
        if count <= 16 {
            if count >= 8 {
                first = key.loadUnaligned(as: UInt64.self)
                last = key.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            } else if count >= 4 {
                first = UInt64(key.loadUnaligned(as: UInt32.self))
                last = UInt64(key.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
            } else if count > 0 {
                first = UInt64(key[0]) << 16 | UInt64(key[count >> 1]) << 8 | UInt64(key[count &- 1])
            }
        } else {
            var at = 0
            while count &- at > 16 {
                state = Self.fold(
                    key.loadUnaligned(fromByteOffset: at, as: UInt64.self) ^ multiplier,
                    key.loadUnaligned(fromByteOffset: at &+ 8, as: UInt64.self) ^ state)
                at &+= 16
            }
            first = key.loadUnaligned(fromByteOffset: count &- 16, as: UInt64.self)
            last = key.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
        }
        // The count is hashed too, because the words of a short key overlap.
        let folded = Self.fold(first ^ multiplier, last ^ state)
        return Self.fold(folded ^ seed, UInt64(truncatingIfNeeded: count) ^ multiplier)
    }

    @inlinable
    @inline(__always)
    static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}

/// The random hash keys of all tables of the process.
enum ByteKeySeed {
    static let seed = UInt64.random(in: 0 ... .max)
    static let multiplier = UInt64.random(in: 0 ... .max)
}
