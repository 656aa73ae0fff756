extension KeyedCollection: RandomAccessCollection {
    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { store.count }

    /// The element at an index, in time that grows with the logarithm of the count. Traps for an index that is none, as that of
    /// an array does: look into `indices` before you use one that a client sends.
    @inlinable
    public subscript(index: Int) -> Element {
        precondition(indices.contains(index), "there is no element \(index) of \(count)")
        return store[index]
    }

    @inlinable
    public func makeIterator() -> Iterator { Iterator(store: store) }

    /// Goes through the elements in order.
    public struct Iterator: IteratorProtocol {
        @usableFromInline let store: ElementStore<Element>
        @usableFromInline var leaf: [Element] = []
        @usableFromInline var place = 0
        @usableFromInline var passed = 0

        @inlinable
        init(store: ElementStore<Element>) { self.store = store }

        @inlinable
        public mutating func next() -> Element? {
            if place == leaf.count {
                guard passed < store.count else { return nil }
                (leaf, place) = store.elements(around: passed)
                passed += leaf.count
            }
            defer { place += 1 }
            return leaf[place]
        }
    }
}

extension KeyedCollection: ExpressibleByArrayLiteral {
    /// Keeps the first of several elements with one id.
    public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension KeyedCollection: Equatable where Element: Equatable {
    /// Whether the elements are equal and in the same order, whatever changed before.
    public static func == (one: KeyedCollection, other: KeyedCollection) -> Bool {
        one.count == other.count && one.elementsEqual(other)
    }
}

extension KeyedCollection: Hashable where Element: Hashable {
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for element in self { hasher.combine(element) }
    }
}

extension KeyedCollection: CustomStringConvertible {
    public var description: String { Array(self).description }
}

extension KeyedCollection: Codable {
    /// Throws `DecodingError` when two elements have one id.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let elements = try container.decode([Element].self)
        self.init(
            try ElementStore(elements) { id in
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "two elements have the id \(id)")
            })
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for element in self { try container.encode(element) }
    }
}
