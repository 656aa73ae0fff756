/// Where a container of an object stands: shared by the container and the pool that gives it out.
protocol PooledPlace: AnyObject {
    /// Holds what it belongs to from now on, as somebody keeps its container.
    func keep()
}

/// Containers of objects that are given out again and again, one for each type of keys: making one takes two lookups of the runtime
/// and memory, which is more than most members cost.
///
/// It owns its memory, behind a pointer, as the tape does.
struct KeyedPool<Place: PooledPlace>: ~Copyable {
    private struct Entry {
        var keys: ObjectIdentifier?
        /// What the container is: the standard library's box.
        var box: AnyObject?
        var place: Place?
    }

    private static var bits: Int { 5 }

    private let entries: UnsafeMutablePointer<Entry>
    /// A bit for each entry that was given out since `end`.
    private var used: UInt32 = 0

    init() {
        entries = .allocate(capacity: 1 << Self.bits)
        entries.initialize(repeating: Entry(), count: 1 << Self.bits)
    }

    deinit {
        entries.deinitialize(count: 1 << Self.bits)
        entries.deallocate()
    }

    /// A container of such keys that nobody has, with its place, which is the caller's to set; nil when there is none. One that somebody
    /// has is not given to another: an object within an object of the same type has its own.
    @inline(__always)
    mutating func take(_ keys: ObjectIdentifier) -> (box: AnyObject, place: Place)? {
        let index = keys.shortHash(bits: Self.bits)
        let entry = entries + index
        guard entry.pointee.keys == keys, isKnownUniquelyReferenced(&entry.pointee.box) else { return nil }
        used |= 1 << UInt32(truncatingIfNeeded: index)
        return (entry.pointee.box.unsafelyUnwrapped, entry.pointee.place.unsafelyUnwrapped)
    }

    /// Keeps a container that was made for its caller, when there is room.
    mutating func add(_ box: AnyObject, _ place: Place, _ keys: ObjectIdentifier) {
        let index = keys.shortHash(bits: Self.bits)
        let entry = entries + index
        guard entry.pointee.box == nil || isKnownUniquelyReferenced(&entry.pointee.box) else { return place.keep() }
        entry.pointee = Entry(keys: keys, box: box, place: place)
        used |= 1 << UInt32(truncatingIfNeeded: index)
    }

    /// Ends a coding: who still has a container keeps it.
    mutating func end() {
        while used != 0 {
            let entry = entries + used.trailingZeroBitCount
            used &= used &- 1
            guard !isKnownUniquelyReferenced(&entry.pointee.box) else { continue }
            entry.pointee.place?.keep()
            entry.pointee = Entry()
        }
    }
}

/// Where an object is that is being decoded.
final class KeyedPlace: PooledPlace {
    /// Alive while it decodes: who decodes holds it, and later on whoever keeps the container.
    unowned(unsafe) var reader: JSONReader
    var mark: Int
    private var kept: JSONReader?

    init(_ reader: JSONReader, _ mark: Int) {
        self.reader = reader
        self.mark = mark
    }

    func keep() { kept = reader }
}

extension JSONReader {
    @inline(__always)
    func container<Key: CodingKey>(_ type: Key.Type, _ mark: Int) -> KeyedDecodingContainer<Key> {
        guard let (box, place) = keyed.take(ObjectIdentifier(type)) else { return newContainer(type, mark) }
        place.reader = self
        place.mark = mark
        // It was one of this very type when it was kept by the name of its keys.
        return unsafeBitCast(box, to: KeyedDecodingContainer<Key>.self)
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(_ type: Key.Type, _ mark: Int) -> KeyedDecodingContainer<Key> {
        let place = KeyedPlace(self, mark)
        let container = KeyedDecodingContainer(KeyedValueDecoder<Key>(place: place))
        // The standard library's container is a reference to a box, and nothing else. Would it ever be more, none would be kept.
        if isPooling, MemoryLayout<KeyedDecodingContainer<Key>>.size == MemoryLayout<AnyObject>.size {
            keyed.add(unsafeBitCast(container, to: AnyObject.self), place, ObjectIdentifier(type))
        } else {
            place.keep()
        }
        return container
    }
}

/// Where an object is that is being encoded.
final class KeyedWritingPlace: PooledPlace {
    /// Alive while it encodes, as the reader of a `KeyedPlace` is.
    unowned(unsafe) var writer: JSONWriter
    var depth: Int
    var serial: UInt64
    private var kept: JSONWriter?

    init(_ place: JSONPlace) { (writer, depth, serial) = (place.writer, place.depth, place.serial) }

    func keep() { kept = writer }
}

extension JSONPlace {
    /// A container of the object that was opened here.
    @inline(__always)
    func container<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        guard let (box, place) = writer.keyed.take(ObjectIdentifier(type)) else { return newContainer(type) }
        place.writer = writer
        place.depth = depth
        place.serial = serial
        // It was one of this very type when it was kept by the name of its keys.
        return unsafeBitCast(box, to: KeyedEncodingContainer<Key>.self)
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        let place = KeyedWritingPlace(self)
        let container = KeyedEncodingContainer(KeyedValueEncoder<Key>(at: place))
        // As with those of a reader. Others than the coder's writer end before somebody could be told.
        if writer.isPooling, MemoryLayout<KeyedEncodingContainer<Key>>.size == MemoryLayout<AnyObject>.size {
            writer.keyed.add(unsafeBitCast(container, to: AnyObject.self), place, ObjectIdentifier(type))
        } else {
            place.keep()
        }
        return container
    }
}
