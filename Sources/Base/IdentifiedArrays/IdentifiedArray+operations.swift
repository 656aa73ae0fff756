extension IdentifiedArray {
    /// Reserves memory for `capacity` elements, so that adding them reallocates nothing.
    public mutating func reserveCapacity(_ capacity: Int) { reserve(capacity) }

    /// The element with an id, or a default value. Setting an element appends it if the id is absent.
    public subscript(id id: ID, default value: @autoclosure () -> Element) -> Element {
        get { self[id: id] ?? value() }
        set { self[id: id] = newValue }
    }

    // MARK: Adding and replacing

    /// Inserts at an index, in order, each element whose id is new.
    public mutating func insert(contentsOf elements: some Collection<Element>, at index: Int) {
        var index = index
        for element in elements where insert(element, at: index).inserted { index += 1 }
    }

    /// Replaces the element at an index and returns the old one. If another element already has the new id, the first of the two
    /// stays and the second is removed.
    @discardableResult
    public mutating func update(_ element: Element, at index: Int) -> Element {
        let replaced = self[index]
        self[index] = element
        return replaced
    }

    /// Replaces the element with the same id at its position, or inserts the new one at an index.
    ///
    /// - Returns: the replaced element, if any, and the index of the new one.
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

    /// Removes and returns the element with the same id, if there is one.
    @discardableResult
    public mutating func remove(_ element: Element) -> Element? { remove(id: element.id) }

    /// Removes and returns the last element. Traps when the array is empty.
    @discardableResult
    public mutating func removeLast() -> Element { remove(at: count - 1) }

    /// Removes the last `number` elements. Traps when there are fewer.
    public mutating func removeLast(_ number: Int) { removeSubrange((count - number)..<count) }

    /// Removes and returns the last element, or returns nil when the array is empty.
    public mutating func popLast() -> Element? { isEmpty ? nil : removeLast() }

    /// Removes and returns the first element. Traps when the array is empty.
    @discardableResult
    public mutating func removeFirst() -> Element { remove(at: 0) }

    /// Removes the first `number` elements. Traps when there are fewer.
    public mutating func removeFirst(_ number: Int) { removeSubrange(0..<number) }

    /// Removes the elements in a range of indices.
    public mutating func removeSubrange(_ bounds: Range<Int>) {
        let removed = Set(ids[bounds])
        removeAll { removed.contains($0.id) }
    }

    /// Removes the elements at these indices, as passed by a list's `onDelete`.
    public mutating func remove(atOffsets offsets: some Sequence<Int>) {
        let removed = Set(offsets.map { ids[$0] })
        removeAll { removed.contains($0.id) }
    }

    // MARK: Reordering

    /// Moves the elements at some indices, in their order, in front of the element at `destination`, as specified by a list's
    /// `onMove`.
    public mutating func move(fromOffsets source: some Sequence<Int>, toOffset destination: Int) {
        let moved = Set(source)
        let before = elements[..<destination].enumerated().filter { !moved.contains($0.offset) }.map(\.element)
        let after = elements[destination...].enumerated().filter { !moved.contains($0.offset + destination) }.map(
            \.element)
        self = Self(uniqueElements: before + moved.sorted().map { elements[$0] } + after)
    }

    /// Reverses the order of the elements.
    public mutating func reverse() { self = Self(uniqueElements: elements.reversed()) }

    /// Shuffles the elements with `generator`.
    public mutating func shuffle(using generator: inout some RandomNumberGenerator) {
        self = Self(uniqueElements: elements.shuffled(using: &generator))
    }

    /// Shuffles the elements.
    public mutating func shuffle() { self = Self(uniqueElements: elements.shuffled()) }

    // MARK: Parts

    /// Returns the elements that satisfy `isIncluded`, in their order.
    public func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> Self {
        Self(uniqueElements: try elements.filter(isIncluded))
    }

    /// Appends each element whose id is new.
    public static func += (left: inout Self, right: some Sequence<Element>) { left.append(contentsOf: right) }

    /// Returns the first array with each element of the second whose id is new.
    public static func + (left: Self, right: some Sequence<Element>) -> Self {
        var result = left
        result += right
        return result
    }
}

extension IdentifiedArray where Element: Comparable {
    /// Sorts the elements in ascending order.
    public mutating func sort() { sort(by: <) }
}
