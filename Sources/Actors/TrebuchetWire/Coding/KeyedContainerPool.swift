/// The state of a keyed container, shared by the container and its pool.
protocol PooledContainerState: AnyObject {
    /// The type-erased container with this state.
    associatedtype Container
    /// Retains the reader or writer from now on, because the container is retained elsewhere.
    func retainOwner()
}

/// A pool of keyed containers, one for each key type. Creating a container needs two runtime lookups and an allocation, which
/// costs more than most members.
///
/// The pool owns its memory, behind a pointer like a `JSONIndex`.
struct KeyedContainerPool<State: PooledContainerState>: ~Copyable {
    /// A pooled container, which this object retains.
    final class PooledContainer {
        /// Returns the container. The caller knows its key type; the function has the same representation for all of them.
        let provide: () -> State.Container
        let state: State

        fileprivate init(_ provide: @escaping () -> State.Container, _ state: State) {
            self.provide = provide
            self.state = state
        }
    }

    /// A slot of the pool.
    private struct Entry {
        var keys: ObjectIdentifier?
        var container: PooledContainer?
        /// The container's box from the standard library. `pooled` retains it, so it has one reference while it is unused.
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
    /// A bit for each entry that was used since `removeRetained`.
    private var used: UInt32 = 0

    init() {
        entries = .allocate(capacity: 1 << Self.bits)
        entries.initialize(repeating: Entry(), count: 1 << Self.bits)
    }

    deinit {
        entries.deinitialize(count: 1 << Self.bits)
        entries.deallocate()
    }

    /// Returns an unused container for a key type, whose state the caller must set; nil if there is none. A container in use is
    /// never returned again: an object inside an object of the same type has another container.
    ///
    /// Each container has its own function, because a request by container type would need a runtime lookup. The result belongs
    /// to the pool and is not retained.
    @inline(__always)
    mutating func dequeue(_ keys: ObjectIdentifier) -> Unmanaged<PooledContainer>? {
        let index = keys.shortHash(bits: Self.bits)
        let entry = entries + index
        guard entry.pointee.keys == keys, entry.pointee.isFree() else { return nil }
        used |= 1 << UInt32(truncatingIfNeeded: index)
        return .passUnretained(entry.pointee.container.unsafelyUnwrapped)
    }

    /// Adds a new container to the pool if there is space.
    mutating func insert<Container>(_ container: Container, _ state: State, _ keys: ObjectIdentifier) {
        let index = keys.shortHash(bits: Self.bits)
        let entry = entries + index
        // The standard library's container is a reference to a box and nothing else. If that ever changes, containers are not
        // pooled.
        guard MemoryLayout<Container>.size == MemoryLayout<AnyObject>.size,
            entry.pointee.box == nil || entry.pointee.isFree()
        else { return state.retainOwner() }
        // Both functions return their result indirectly, so they have the same representation. The result is only requested as
        // its own type.
        let provide = unsafeBitCast(Self.provider(of: container), to: (() -> State.Container).self)
        // The size check above ensures that it is a reference.
        let box = unsafeBitCast(container, to: Unmanaged<AnyObject>.self)
        entry.pointee = Entry(keys: keys, container: PooledContainer(provide, state), box: box)
        used |= 1 << UInt32(truncatingIfNeeded: index)
    }

    /// Returns a function that returns the container. It is generic over the container type, so that it needs no runtime lookup.
    @inline(never)
    private static func provider<Container>(of container: Container) -> () -> Container { { container } }

    /// Ends an encoding or decoding: containers that are still retained elsewhere leave the pool.
    mutating func removeRetained() {
        while used != 0 {
            let entry = entries + used.trailingZeroBitCount
            used &= used &- 1
            guard !entry.pointee.isFree() else { continue }
            entry.pointee.container?.state.retainOwner()
            entry.pointee = Entry()
        }
    }
}

/// The state of an object that is being decoded.
final class KeyedDecodingState: PooledContainerState {
    typealias Container = KeyedDecodingContainer<JSONStep>

    /// The reader. It is alive during the decoding, when the caller retains it; afterwards `retainOwner` retains it for the container.
    var reader: Unmanaged<JSONReader>
    var mark: Int
    private var retainedReader: JSONReader?

    init(_ reader: JSONReader, _ mark: Int) {
        self.reader = .passUnretained(reader)
        self.mark = mark
    }

    func retainOwner() { retainedReader = reader.takeUnretainedValue() }
}

extension JSONReader {
    @inline(__always)
    func container<Key: CodingKey>(_ type: Key.Type, _ mark: Int) -> KeyedDecodingContainer<Key> {
        guard let pooled = keyed.dequeue(ObjectIdentifier(type)) else { return newContainer(type, mark) }
        return pooled._withUnsafeGuaranteedRef { pooled in
            pooled.state.reader = .passUnretained(self)
            pooled.state.mark = mark
            // The entry was stored for this key type, so the function returns exactly this container type.
            return unsafeBitCast(pooled.provide, to: (() -> KeyedDecodingContainer<Key>).self)()
        }
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(_ type: Key.Type, _ mark: Int) -> KeyedDecodingContainer<Key> {
        let state = KeyedDecodingState(self, mark)
        let container = KeyedDecodingContainer(KeyedValueDecoder<Key>(state: state))
        if isPooling { keyed.insert(container, state, ObjectIdentifier(type)) } else { state.retainOwner() }
        return container
    }
}

/// The state of an object that is being encoded.
final class KeyedEncodingState: PooledContainerState {
    typealias Container = KeyedEncodingContainer<JSONStep>

    /// The writer, alive during the encoding like the reader of a `KeyedDecodingState`.
    var writer: Unmanaged<JSONWriter>
    var depth: Int
    var serial: UInt64
    private var retainedWriter: JSONWriter?

    init(_ position: JSONWriterPosition) {
        (writer, depth, serial) = (.passUnretained(position.writer), position.depth, position.serial)
    }

    func retainOwner() { retainedWriter = writer.takeUnretainedValue() }
}

extension JSONWriterPosition {
    /// Returns a container for the object that was opened here.
    @inline(__always)
    func container<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        guard let pooled = writer.keyed.dequeue(ObjectIdentifier(type)) else { return newContainer(type) }
        return pooled._withUnsafeGuaranteedRef { pooled in
            pooled.state.writer = .passUnretained(writer)
            pooled.state.depth = depth
            pooled.state.serial = serial
            // The entry was stored for this key type, so the function returns exactly this container type.
            return unsafeBitCast(pooled.provide, to: (() -> KeyedEncodingContainer<Key>).self)()
        }
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        let state = KeyedEncodingState(self)
        let container = KeyedEncodingContainer(KeyedValueEncoder<Key>(state: state))
        // Only the coder's writer reports its end; others end without notice.
        if writer.isPooling {
            writer.keyed.insert(container, state, ObjectIdentifier(type))
        } else {
            state.retainOwner()
        }
        return container
    }
}
