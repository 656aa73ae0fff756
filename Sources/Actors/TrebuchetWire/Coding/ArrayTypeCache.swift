/// An array that is decoded element by element into reserved memory, without an unkeyed container.
protocol ReadableArray {
    /// Decodes the array at a mark into uninitialized memory.
    static func read(_ reader: JSONReader, _ mark: Int, into memory: UnsafeMutableRawPointer) throws
}

extension Array: ReadableArray where Element: Decodable {
    static func read(_ reader: JSONReader, _ mark: Int, into memory: UnsafeMutableRawPointer) throws {
        let elements: [Element] = try reader.elements(of: mark)
        // Cast to a reference, which an array is: binding to the array type would need a runtime lookup.
        memory.assumingMemoryBound(to: AnyObject.self).initialize(to: unsafeBitCast(elements, to: AnyObject.self))
    }
}

/// A cache of types and whether they are such arrays, because the runtime lookup is slower.
///
/// It owns its memory, behind a pointer like a `JSONIndex`.
struct ArrayTypeCache: ~Copyable {
    private static let capacity = 32

    private let slots: UnsafeMutablePointer<(type: ObjectIdentifier?, array: (any ReadableArray.Type)?)>

    init() {
        slots = .allocate(capacity: Self.capacity)
        slots.initialize(repeating: (nil, nil), count: Self.capacity)
    }

    // The entries are addresses of types, which need no release.
    deinit { slots.deallocate() }

    @inline(__always)
    func array<Value>(_ type: Value.Type) -> (any ReadableArray.Type)? {
        let name = ObjectIdentifier(type)
        // Types are aligned to eight bytes.
        let slot = slots + name.shortHash(bits: 5)
        if slot.pointee.type == name { return slot.pointee.array }
        return withCachedType(type, slot)
    }

    @inline(never)
    private func withCachedType<Value>(
        _ type: Value.Type, _ slot: UnsafeMutablePointer<(type: ObjectIdentifier?, array: (any ReadableArray.Type)?)>
    ) -> (any ReadableArray.Type)? {
        slot.pointee = (ObjectIdentifier(type), type as? any ReadableArray.Type)
        return slot.pointee.array
    }
}

extension ObjectIdentifier {
    /// Returns some bits that differ between types.
    @inline(__always)
    func shortHash(bits: Int) -> Int {
        Int(truncatingIfNeeded: (UInt(bitPattern: self) >> 3 &* 0x9E37_79B9_7F4A_7C15) >> UInt(64 - bits))
    }
}

extension JSONReader {
    fileprivate func elements<Element: Decodable>(of mark: Int) throws -> [Element] {
        guard first(mark) == 0x5B else { throw mismatch([Any].self, mark) }
        let count = count(mark)
        var next = mark + 2
        // A literal needs one runtime lookup and a filled array four, which costs more than a few elements.
        switch count {
        case 0: return []
        case 1: return [try element(0, &next, mark)]
        case 2: return [try element(0, &next, mark), try element(1, &next, mark)]
        case 3: return [try element(0, &next, mark), try element(1, &next, mark), try element(2, &next, mark)]
        case 4:
            return [
                try element(0, &next, mark), try element(1, &next, mark), try element(2, &next, mark),
                try element(3, &next, mark),
            ]
        default: break
        }
        return try Array(unsafeUninitializedCapacity: count) { elements, read in
            for index in 0..<count {
                (elements.baseAddress! + index).initialize(to: try self.element(index, &next, mark))
                read = index + 1
            }
        }
    }

    @inline(__always)
    private func element<Element: Decodable>(_ index: Int, _ next: inout Int, _ array: Int) throws -> Element {
        let mark = next
        next = self.next(mark)
        return try read(Element.self, mark, in: array, index)
    }
}
