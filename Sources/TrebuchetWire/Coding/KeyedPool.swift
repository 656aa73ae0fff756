/// Where a container of an object stands: shared by the container and the pool that gave it out.
final class KeyedPlace {
    /// Alive while it decodes: who decodes holds it, and `ended` whoever keeps the container.
    unowned(unsafe) var reader: JSONReader
    var mark: Int
    private var kept: JSONReader?

    init(_ reader: JSONReader, _ mark: Int) {
        self.reader = reader
        self.mark = mark
    }

    /// Holds the reader from now on.
    func keep() { kept = reader }
}

/// Containers of objects that are given out again and again, one for each type of keys: making one takes two lookups of the runtime
/// and memory, which is more than most members cost.
///
/// It owns its memory, behind a pointer, as the tape does.
struct KeyedPool: ~Copyable {
    private struct Entry {
        var keys: ObjectIdentifier?
        /// What the container is: the standard library's box.
        var box: AnyObject?
        var place: KeyedPlace?
    }

    private static let bits = 4
    private let entries: UnsafeMutablePointer<Entry>
    /// A bit for each entry that was given out in this decoding.
    private var used: UInt32 = 0

    init() {
        entries = .allocate(capacity: 1 << Self.bits)
        entries.initialize(repeating: Entry(), count: 1 << Self.bits)
    }

    deinit {
        entries.deinitialize(count: 1 << Self.bits)
        entries.deallocate()
    }

    @inline(__always)
    mutating func container<Key: CodingKey>(
        _ keys: Key.Type, _ reader: JSONReader, _ mark: Int
    ) -> KeyedDecodingContainer<Key> {
        let name = ObjectIdentifier(keys)
        let index = name.shortHash(bits: Self.bits)
        let entry = entries + index
        // One that somebody has is not given to another: an object within an object of the same type has one of its own.
        if entry.pointee.keys == name, isKnownUniquelyReferenced(&entry.pointee.box) {
            let place = entry.pointee.place.unsafelyUnwrapped
            place.reader = reader
            place.mark = mark
            used |= 1 << UInt32(truncatingIfNeeded: index)
            return unsafeBitCast(entry.pointee.box.unsafelyUnwrapped, to: KeyedDecodingContainer<Key>.self)
        }
        return make(keys, reader, mark, index)
    }

    @inline(never)
    private mutating func make<Key: CodingKey>(
        _ keys: Key.Type, _ reader: JSONReader, _ mark: Int, _ index: Int
    ) -> KeyedDecodingContainer<Key> {
        let place = KeyedPlace(reader, mark)
        let container = KeyedDecodingContainer(KeyedValueDecoder<Key>(place: place))
        let bit = UInt32(1) << UInt32(truncatingIfNeeded: index)
        // The standard library's container is a reference to a box, and nothing else. Would it ever be more, none would be kept.
        guard MemoryLayout<KeyedDecodingContainer<Key>>.size == MemoryLayout<AnyObject>.size, used & bit == 0 else {
            place.keep()
            return container
        }
        entries[index] = Entry(
            keys: ObjectIdentifier(keys), box: unsafeBitCast(container, to: AnyObject.self), place: place)
        used |= bit
        return container
    }

    /// Ends a decoding: who still has a container has the reader too.
    mutating func end() {
        while used != 0 {
            let entry = entries + used.trailingZeroBitCount
            used &= used &- 1
            if !isKnownUniquelyReferenced(&entry.pointee.box) {
                entry.pointee.place?.keep()
                entry.pointee = Entry()
            }
        }
    }
}
