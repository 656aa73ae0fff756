/// A hash table from short byte strings to values, looked up by bytes in place.
///
/// Names of actors and methods arrive as a few bytes in the middle of a message; a `Dictionary` would need a `String`
/// for each look-up. Keys come from the program, never from a peer, so a plain hash does.
public struct ByteKeyTable<Value> {
    private struct Slot {
        let hash: UInt64
        let key: [UInt8]
        var value: Value
    }

    /// Open addressing with linear probing; the count of slots is a power of two, at most half of them full.
    private var slots: [Slot?] = []
    public private(set) var count = 0

    public init() {}

    /// The value for `key`, or nil.
    public subscript(key: UnsafeRawBufferPointer) -> Value? {
        guard count > 0 else { return nil }
        let hash = Self.hash(key)
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: hash) & mask
        while let slot = slots[index] {
            if slot.hash == hash, Self.equal(slot.key, key) { return slot.value }
            index = (index + 1) & mask
        }
        return nil
    }

    public subscript(key: String) -> Value? {
        get {
            var key = key
            return key.withUTF8 { self[UnsafeRawBufferPointer($0)] }
        }
        set {
            if let newValue { insert(newValue, for: key) } else { remove(key) }
        }
    }

    /// All values, in no particular order.
    public var values: [Value] { slots.compactMap { $0?.value } }

    /// All keys, in no particular order.
    public var keys: [String] { slots.compactMap { $0.map { String(decoding: $0.key, as: UTF8.self) } } }

    private mutating func insert(_ value: Value, for key: String) {
        if (count + 1) * 2 > slots.count { rehash(to: max(8, slots.count * 2)) }
        let bytes = Array(key.utf8)
        let hash = bytes.withUnsafeBytes { Self.hash($0) }
        place(Slot(hash: hash, key: bytes, value: value))
    }

    private mutating func place(_ slot: Slot) {
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: slot.hash) & mask
        while let other = slots[index] {
            if other.hash == slot.hash, other.key == slot.key {
                slots[index] = slot
                return
            }
            index = (index + 1) & mask
        }
        slots[index] = slot
        count += 1
    }

    private mutating func remove(_ key: String) {
        let bytes = Array(key.utf8)
        guard let index = slots.firstIndex(where: { $0?.key == bytes }) else { return }
        slots[index] = nil
        // A hole would cut a run of probes in two: place the others anew. Removal is rare.
        rehash(to: slots.count)
    }

    private mutating func rehash(to size: Int) {
        let old = slots
        slots = Array(repeating: nil, count: size)
        count = 0
        for case .some(let slot) in old { place(slot) }
    }

    /// FNV-1a over the bytes, finished so that the low bits depend on all of them.
    private static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in key { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return hash ^ (hash >> 32)
    }

    private static func equal(_ key: [UInt8], _ other: UnsafeRawBufferPointer) -> Bool {
        guard key.count == other.count else { return false }
        return key.withUnsafeBytes { $0.elementsEqual(other) }
    }
}
