extension IdentifiedArray {
    /// Makes room for so many elements, so that adding them moves none.
    public mutating func reserveCapacity(_ capacity: Int) { reserve(capacity) }

    /// The element with an id, or a value in its place; setting it appends where there is none.
    public subscript(id id: ID, default value: @autoclosure () -> Element) -> Element {
        get { self[id: id] ?? value() }
        set { self[id: id] = newValue }
    }

    // MARK: Adding and replacing

    /// Adds at an index, in their order, each element that has a new id.
    public mutating func insert(contentsOf elements: some Collection<Element>, at index: Int) {
        var index = index
        for element in elements where insert(element, at: index).inserted { index += 1 }
    }

    /// Replaces the element at an index, and returns the old one. When the new one has the id of another element, the one in front
    /// stays and the other is removed.
    @discardableResult
    public mutating func update(_ element: Element, at index: Int) -> Element {
        let replaced = self[index]
        self[index] = element
        return replaced
    }

    /// Replaces the element with the same id, wherever it is, or adds the new one at an index; returns the old one and where it
    /// is.
    @discardableResult
    public mutating func updateOrInsert(
        _ element: Element, at index: Int
    ) -> (originalMember: Element?, index: Int) {
        guard let position = self.index(id: element.id) else {
            insert(element, at: index)
            return (nil, index)
        }
        return (update(element, at: position), position)
    }

    // MARK: Removing

    /// Removes the element with the same id, which is returned, if there is one.
    @discardableResult
    public mutating func remove(_ element: Element) -> Element? { remove(id: element.id) }

    /// Removes the last element, which is returned. Traps when there is none.
    @discardableResult
    public mutating func removeLast() -> Element { remove(at: count - 1) }

    /// Removes the last elements. Traps when there are fewer.
    public mutating func removeLast(_ number: Int) { removeSubrange((count - number)..<count) }

    /// Removes the last element, which is returned; nil when there is none.
    public mutating func popLast() -> Element? { isEmpty ? nil : removeLast() }

    /// Removes the first element, which is returned. Traps when there is none.
    @discardableResult
    public mutating func removeFirst() -> Element { remove(at: 0) }

    /// Removes the first elements. Traps when there are fewer.
    public mutating func removeFirst(_ number: Int) { removeSubrange(0..<number) }

    /// Removes the elements at indices that follow each other.
    public mutating func removeSubrange(_ bounds: Range<Int>) {
        let removed = Set(ids[bounds])
        removeAll { removed.contains($0.id) }
    }

    /// Removes the elements at these indices, as the `onDelete` of a list gives them.
    public mutating func remove(atOffsets offsets: some Sequence<Int>) {
        let removed = Set(offsets.map { ids[$0] })
        removeAll { removed.contains($0.id) }
    }

    // MARK: Reordering

    /// Takes the elements at some indices out and puts them, in their order, before what stands at `destination`, as the `onMove`
    /// of a list says it.
    public mutating func move(fromOffsets source: some Sequence<Int>, toOffset destination: Int) {
        let moved = Set(source)
        let before = elements[..<destination].enumerated().filter { !moved.contains($0.offset) }.map(\.element)
        let after = elements[destination...].enumerated().filter { !moved.contains($0.offset + destination) }.map(
            \.element)
        self = Self(uniqueElements: before + moved.sorted().map { elements[$0] } + after)
    }

    /// Turns the order round.
    public mutating func reverse() { self = Self(uniqueElements: elements.reversed()) }

    /// Puts the elements in an order of chance.
    public mutating func shuffle(using generator: inout some RandomNumberGenerator) {
        self = Self(uniqueElements: elements.shuffled(using: &generator))
    }

    /// Puts the elements in an order of chance.
    public mutating func shuffle() { self = Self(uniqueElements: elements.shuffled()) }

    // MARK: Parts

    /// The elements of which `isIncluded` is true, in their order.
    public func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> Self {
        Self(uniqueElements: try elements.filter(isIncluded))
    }

    /// Adds each element that has a new id.
    public static func += (left: inout Self, right: some Sequence<Element>) { left.append(contentsOf: right) }

    /// The first array with each element of the second that has a new id.
    public static func + (left: Self, right: some Sequence<Element>) -> Self {
        var result = left
        result += right
        return result
    }
}

extension IdentifiedArray where Element: Comparable {
    /// Sorts the elements, the smallest first.
    public mutating func sort() { sort(by: <) }
}
