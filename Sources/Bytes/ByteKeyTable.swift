public import Glibc

/// A hash table from short byte strings to values, looked up by bytes in place.
///
/// Names of actors and methods arrive as a few bytes in the middle of a message; a `Dictionary` would need a `String`
/// for each look-up. Keys come from the program, never from a peer, so a plain hash does. Inlinable throughout: a call
/// looks up twice, and unspecialised generic code would cost more than all the rest of it.
public struct ByteKeyTable<Value> {
    /// Open addressing with linear probing; the count of slots is a power of two, at most half of them full.
    @usableFromInline
    struct Slot {
        @usableFromInline var hash: UInt64
        /// Where the key lies in `keyBytes`.
        @usableFromInline var offset: Int32
        @usableFromInline var count: Int32
        /// Which value it is; -1 for an empty slot.
        @usableFromInline var index: Int32

        @inlinable
        init(hash: UInt64, offset: Int32, count: Int32, index: Int32) {
            self.hash = hash
            self.offset = offset
            self.count = count
            self.index = index
        }

        @inlinable static var empty: Slot { Slot(hash: 0, offset: 0, count: 0, index: -1) }
    }

    @usableFromInline var slots: [Slot] = []
    @usableFromInline var keyBytes: [UInt8] = []
    /// In the order of insertion.
    public private(set) var values: [Value] = []
    public private(set) var keys: [String] = []

    public init() {}

    public var count: Int { values.count }

    /// The value for `key`, or nil.
    @inlinable
    public subscript(key: UnsafeRawBufferPointer) -> Value? {
        guard !slots.isEmpty else { return nil }
        let hash = Self.hash(key)
        let mask = slots.count &- 1
        var place = Int(truncatingIfNeeded: hash) & mask
        while true {
            let slot = slots[place]
            if slot.index < 0 { return nil }
            if slot.hash == hash, isKey(slot, key) { return values[Int(slot.index)] }
            place = (place &+ 1) & mask
        }
    }

    @inlinable
    public subscript(key: String) -> Value? {
        get {
            var key = key
            return key.withUTF8 { self[UnsafeRawBufferPointer($0)] }
        }
        set {
            remove(key)
            if let newValue { insert(newValue, for: key) }
        }
    }

    @inlinable
    func isKey(_ slot: Slot, _ key: UnsafeRawBufferPointer) -> Bool {
        guard Int(slot.count) == key.count else { return false }
        guard let other = key.baseAddress else { return true }
        return keyBytes.withUnsafeBytes { bytes in
            bytes.baseAddress.map { memcmp($0 + Int(slot.offset), other, key.count) == 0 } ?? true
        }
    }

    @usableFromInline
    mutating func insert(_ value: Value, for key: String) {
        values.append(value)
        keys.append(key)
        if values.count * 2 > slots.count { rebuild() } else { place(values.count - 1) }
    }

    @usableFromInline
    mutating func remove(_ key: String) {
        guard let index = keys.firstIndex(of: key) else { return }
        keys.remove(at: index)
        values.remove(at: index)
        // A hole would cut a run of probes in two: all are placed anew. Removal is rare.
        rebuild()
    }

    private mutating func rebuild() {
        var size = 8
        while size < values.count * 2 { size *= 2 }
        slots = Array(repeating: .empty, count: size)
        keyBytes = []
        for index in keys.indices { place(index) }
    }

    private mutating func place(_ index: Int) {
        let bytes = Array(keys[index].utf8)
        let hash = bytes.withUnsafeBytes { Self.hash($0) }
        let mask = slots.count - 1
        var at = Int(truncatingIfNeeded: hash) & mask
        while slots[at].index >= 0 { at = (at + 1) & mask }
        slots[at] = Slot(
            hash: hash, offset: Int32(keyBytes.count), count: Int32(bytes.count), index: Int32(index))
        keyBytes += bytes
    }

    /// FNV-1a over words of eight bytes, finished so that the low bits depend on all of them.
    @inlinable
    static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        var at = 0
        while at &+ 8 <= key.count {
            hash = (hash ^ key.loadUnaligned(fromByteOffset: at, as: UInt64.self)) &* 0x100_0000_01b3
            hash ^= hash >> 29
            at &+= 8
        }
        while at < key.count {
            hash = (hash ^ UInt64(key[at])) &* 0x100_0000_01b3
            at &+= 1
        }
        return hash ^ (hash >> 32)
    }
}
