/// Where a container of an object stands: shared by the container and the pool that gives it out.
protocol PooledPlace: AnyObject {
    /// A container of such a place, by whichever keys.
    associatedtype Container
    /// Holds what it belongs to from now on, as somebody keeps its container.
    func keep()
}

/// Containers of objects that are given out again and again, one for each type of keys: making one takes two lookups of the runtime
/// and memory, which is more than most members cost.
///
/// It owns its memory, behind a pointer, as the tape does.
struct KeyedPool<Place: PooledPlace>: ~Copyable {
    /// A container that is kept, which it holds.
    final class Kept {
        /// Gives the container. Of what keys it is, the code that asks knows; it is the same function for all of them.
        let give: () -> Place.Container
        let place: Place

        fileprivate init(_ give: @escaping () -> Place.Container, _ place: Place) {
            self.give = give
            self.place = place
        }
    }

    private struct Entry {
        var keys: ObjectIdentifier?
        var kept: Kept?
        /// What the container is: the standard library's box. `kept` holds it, so that it has one reference while nobody has it.
        var box: Unmanaged<AnyObject>?

        @inline(__always)
        mutating func isFree() -> Bool {
            withUnsafeMutablePointer(to: &box) {
                $0.withMemoryRebound(to: AnyObject?.self, capacity: 1) { isKnownUniquelyReferenced(&$0.pointee) }
            }
        }
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

    /// A container of such keys that nobody has, whose place is the caller's to set; nil when there is none. One that somebody has is not
    /// given to another: an object within an object of the same type has its own.
    ///
    /// A function of its own for each container, since who asks for the container by its type would have the runtime look that up. It is
    /// the pool's, and not counted.
    @inline(__always)
    mutating func take(_ keys: ObjectIdentifier) -> Unmanaged<Kept>? {
        let index = keys.shortHash(bits: Self.bits)
        let entry = entries + index
        guard entry.pointee.keys == keys, entry.pointee.isFree() else { return nil }
        used |= 1 << UInt32(truncatingIfNeeded: index)
        return .passUnretained(entry.pointee.kept.unsafelyUnwrapped)
    }

    /// Keeps a container that was made for its caller, when there is room.
    mutating func add<Container>(_ container: Container, _ place: Place, _ keys: ObjectIdentifier) {
        let index = keys.shortHash(bits: Self.bits)
        let entry = entries + index
        // The standard library's container is a reference to a box, and nothing else. Would it ever be more, none would be kept.
        guard MemoryLayout<Container>.size == MemoryLayout<AnyObject>.size,
            entry.pointee.box == nil || entry.pointee.isFree()
        else { return place.keep() }
        // Both are of one form, as each container is given indirectly, and only by its own type is it asked for again.
        let give = unsafeBitCast(Self.giver(of: container), to: (() -> Place.Container).self)
        // A reference by its size.
        let box = unsafeBitCast(container, to: Unmanaged<AnyObject>.self)
        entry.pointee = Entry(keys: keys, kept: Kept(give, place), box: box)
        used |= 1 << UInt32(truncatingIfNeeded: index)
    }

    /// Generic by the container itself, whose type the function knows then and need not ask for.
    @inline(never)
    private static func giver<Container>(of container: Container) -> () -> Container { { container } }

    /// Ends a coding: who still has a container keeps it.
    mutating func end() {
        while used != 0 {
            let entry = entries + used.trailingZeroBitCount
            used &= used &- 1
            guard !entry.pointee.isFree() else { continue }
            entry.pointee.kept?.place.keep()
            entry.pointee = Entry()
        }
    }
}

/// Where an object is that is being decoded.
final class KeyedPlace: PooledPlace {
    typealias Container = KeyedDecodingContainer<JSONStep>

    /// Alive while it decodes: who decodes holds it, and later on whoever keeps the container.
    var reader: Unmanaged<JSONReader>
    var mark: Int
    private var kept: JSONReader?

    init(_ reader: JSONReader, _ mark: Int) {
        self.reader = .passUnretained(reader)
        self.mark = mark
    }

    func keep() { kept = reader.takeUnretainedValue() }
}

extension JSONReader {
    @inline(__always)
    func container<Key: CodingKey>(_ type: Key.Type, _ mark: Int) -> KeyedDecodingContainer<Key> {
        guard let kept = keyed.take(ObjectIdentifier(type)) else { return newContainer(type, mark) }
        return kept._withUnsafeGuaranteedRef { kept in
            kept.place.reader = .passUnretained(self)
            kept.place.mark = mark
            // It was one of this very type when it was kept by the name of its keys.
            return unsafeBitCast(kept.give, to: (() -> KeyedDecodingContainer<Key>).self)()
        }
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(_ type: Key.Type, _ mark: Int) -> KeyedDecodingContainer<Key> {
        let place = KeyedPlace(self, mark)
        let container = KeyedDecodingContainer(KeyedValueDecoder<Key>(place: place))
        if isPooling { keyed.add(container, place, ObjectIdentifier(type)) } else { place.keep() }
        return container
    }
}

/// Where an object is that is being encoded.
final class KeyedWritingPlace: PooledPlace {
    typealias Container = KeyedEncodingContainer<JSONStep>

    /// Alive while it encodes, as the reader of a `KeyedPlace` is.
    var writer: Unmanaged<JSONWriter>
    var depth: Int
    var serial: UInt64
    private var kept: JSONWriter?

    init(_ place: JSONPlace) {
        (writer, depth, serial) = (.passUnretained(place.writer), place.depth, place.serial)
    }

    func keep() { kept = writer.takeUnretainedValue() }
}

extension JSONPlace {
    /// A container of the object that was opened here.
    @inline(__always)
    func container<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        guard let kept = writer.keyed.take(ObjectIdentifier(type)) else { return newContainer(type) }
        return kept._withUnsafeGuaranteedRef { kept in
            kept.place.writer = .passUnretained(writer)
            kept.place.depth = depth
            kept.place.serial = serial
            // It was one of this very type when it was kept by the name of its keys.
            return unsafeBitCast(kept.give, to: (() -> KeyedEncodingContainer<Key>).self)()
        }
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        let place = KeyedWritingPlace(self)
        let container = KeyedEncodingContainer(KeyedValueEncoder<Key>(at: place))
        // Others than the coder's writer end before somebody could be told.
        if writer.isPooling { writer.keyed.add(container, place, ObjectIdentifier(type)) } else { place.keep() }
        return container
    }
}
