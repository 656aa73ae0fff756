/// An array that is read element by element, with room for all of them, and without the container that it would ask for.
protocol ReadableArray {
    /// Reads the array at a mark into memory that is not initialised.
    static func read(_ reader: JSONReader, _ mark: Int, into memory: UnsafeMutableRawPointer) throws
}

extension Array: ReadableArray where Element: Decodable {
    static func read(_ reader: JSONReader, _ mark: Int, into memory: UnsafeMutableRawPointer) throws {
        let elements: [Element] = try reader.elements(of: mark)
        // As a reference, which an array is: one of its own type the runtime would look up.
        memory.assumingMemoryBound(to: AnyObject.self).initialize(to: unsafeBitCast(elements, to: AnyObject.self))
    }
}

/// Which types are arrays that can be read so, of those asked for last: the runtime looks longer.
///
/// It owns its memory, behind a pointer, as the tape does.
struct KnownArrays: ~Copyable {
    private static let capacity = 32

    private let places: UnsafeMutablePointer<(type: ObjectIdentifier?, array: (any ReadableArray.Type)?)>

    init() {
        places = .allocate(capacity: Self.capacity)
        places.initialize(repeating: (nil, nil), count: Self.capacity)
    }

    // What is stored there are addresses of types, which need no release.
    deinit { places.deallocate() }

    @inline(__always)
    func array<Value>(_ type: Value.Type) -> (any ReadableArray.Type)? {
        let name = ObjectIdentifier(type)
        // Types lie at multiples of eight.
        let place = places + name.shortHash(bits: 5)
        if place.pointee.type == name { return place.pointee.array }
        return look(type, place)
    }

    @inline(never)
    private func look<Value>(
        _ type: Value.Type, _ place: UnsafeMutablePointer<(type: ObjectIdentifier?, array: (any ReadableArray.Type)?)>
    ) -> (any ReadableArray.Type)? {
        place.pointee = (ObjectIdentifier(type), type as? any ReadableArray.Type)
        return place.pointee.array
    }
}

extension ObjectIdentifier {
    /// Some bits that differ among types.
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
        // A literal takes one lookup of the runtime, where an array that is filled takes four: more than a few elements cost.
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
