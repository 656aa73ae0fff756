extension KeyedCollection: RandomAccessCollection {
    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { store.count }

    /// The element at an index, in time logarithmic in the count. Traps for an invalid index, like an array: check an index from
    /// a client against `indices` first.
    @inlinable
    public subscript(index: Int) -> Element {
        precondition(indices.contains(index), "index \(index) is out of range for \(count) elements")
        return store[index]
    }

    @inlinable
    public func makeIterator() -> Iterator { Iterator(store: store) }

    /// An iterator over the elements in order.
    public struct Iterator: IteratorProtocol {
        @usableFromInline let store: ElementStore<Element>
        @usableFromInline var leaf: [Element] = []
        @usableFromInline var position = 0
        @usableFromInline var passed = 0

        @inlinable
        init(store: ElementStore<Element>) { self.store = store }

        @inlinable
        public mutating func next() -> Element? {
            if position == leaf.count {
                guard passed < store.count else { return nil }
                (leaf, position) = store.elements(around: passed)
                passed += leaf.count
            }
            defer { position += 1 }
            return leaf[position]
        }
    }
}

extension KeyedCollection: ExpressibleByArrayLiteral {
    /// Creates a collection that keeps the first of several elements with the same id.
    public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension KeyedCollection: Equatable where Element: Equatable {
    /// Returns whether the elements are equal and in the same order, ignoring recorded changes.
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
    /// Decodes an array of elements. Throws `DecodingError` when two elements have the same id.
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
