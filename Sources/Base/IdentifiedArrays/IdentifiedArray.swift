/// An array of elements with unique ids that finds an element by its id in constant time.
///
/// The array keeps the first of several elements with the same id: the present one when another is added, and the one in front
/// when an element is changed to the id of another. ``updateOrAppend(_:)`` replaces instead, and ``init(_:uniquingIDsWith:)``
/// calls a closure to choose.
///
/// Adding and removing at the end takes constant time; elsewhere the time is proportional to the number of later elements. The
/// type is no `MutableCollection`, because setting an element may remove another. ``swapAt(_:_:)``, ``move(from:to:)`` and
/// ``sort(by:)`` reorder it.
public struct IdentifiedArray<ID, Element: Identifiable> where Element.ID == ID {
    /// The elements in order.
    public private(set) var elements: [Element] = []
    /// The ids in order.
    public private(set) var ids: [ID] = []
    /// The index of the element with an id.
    private var positions: [ID: Int] = [:]

    /// Creates an empty array.
    public init() {}

    /// Creates an array that keeps the first of several elements with the same id.
    public init(uniqueElements elements: some Sequence<Element>) {
        for element in elements { append(element) }
    }

    /// Creates an array and resolves duplicate ids with `choose`.
    ///
    /// - Parameter choose: called with two elements of one id; its result replaces the first.
    public init(
        _ elements: some Sequence<Element>,
        uniquingIDsWith choose: (_ first: Element, _ second: Element) throws -> Element
    ) rethrows {
        self.init()
        for element in elements {
            if let position = positions[element.id] {
                self[position] = try choose(self.elements[position], element)
            } else {
                append(element)
            }
        }
    }

    /// Returns the index of the element with this id, or nil.
    public func index(id: ID) -> Int? { positions[id] }

    /// Returns whether there is an element with this id, in constant time.
    public func contains(id: ID) -> Bool { positions[id] != nil }

    /// The element with this id.
    ///
    /// Setting nil removes it; setting an element for an absent id appends it. The new element is found by its `id`, even if that
    /// differs from the subscript's argument.
    public subscript(id id: ID) -> Element? {
        get { positions[id].map { elements[$0] } }
        set {
            guard let newValue else {
                remove(id: id)
                return
            }
            if let position = positions[id] {
                self[position] = newValue
            } else {
                append(newValue)
            }
        }
    }

    mutating func reserve(_ capacity: Int) {
        elements.reserveCapacity(capacity)
        ids.reserveCapacity(capacity)
        positions.reserveCapacity(capacity)
    }

    // MARK: Adding and replacing

    /// Appends the element unless its id is present. The returned index is that of the element with this id.
    @discardableResult
    public mutating func append(_ element: Element) -> (inserted: Bool, index: Int) {
        insert(element, at: elements.endIndex)
    }

    /// Appends each element whose id is new.
    public mutating func append(contentsOf elements: some Sequence<Element>) {
        for element in elements { append(element) }
    }

    /// Inserts the element at an index unless its id is present. The returned index is that of the element with this id.
    @discardableResult
    public mutating func insert(_ element: Element, at index: Int) -> (inserted: Bool, index: Int) {
        if let present = positions[element.id] { return (false, present) }
        elements.insert(element, at: index)
        ids.insert(element.id, at: index)
        number(from: index)
        return (true, index)
    }

    /// Replaces and returns the element with the same id, or appends the new one.
    @discardableResult
    public mutating func updateOrAppend(_ element: Element) -> Element? {
        guard let position = positions[element.id] else {
            append(element)
            return nil
        }
        let replaced = elements[position]
        elements[position] = element
        return replaced
    }

    // MARK: Removing

    /// Removes and returns the element with this id, if there is one.
    @discardableResult
    public mutating func remove(id: ID) -> Element? { positions[id].map { remove(at: $0) } }

    /// Removes and returns the element at an index. Traps for an invalid index.
    @discardableResult
    public mutating func remove(at index: Int) -> Element {
        positions[ids.remove(at: index)] = nil
        defer { number(from: index) }
        return elements.remove(at: index)
    }

    /// Removes the elements that satisfy `isRemoved`; the others keep their order. If the closure throws, nothing is removed.
    public mutating func removeAll(where isRemoved: (Element) throws -> Bool) rethrows {
        self = Self(uniqueElements: try elements.filter { try !isRemoved($0) })
    }

    /// Removes all elements.
    ///
    /// - Parameter keepingCapacity: whether the memory is kept for later elements. Default false.
    public mutating func removeAll(keepingCapacity: Bool = false) {
        elements.removeAll(keepingCapacity: keepingCapacity)
        ids.removeAll(keepingCapacity: keepingCapacity)
        positions.removeAll(keepingCapacity: keepingCapacity)
    }

    // MARK: Reordering

    /// Moves the element at `source` so that its new index is `destination`.
    public mutating func move(from source: Int, to destination: Int) {
        elements.insert(elements.remove(at: source), at: destination)
        ids.insert(ids.remove(at: source), at: destination)
        number(from: Swift.min(source, destination), upTo: Swift.max(source, destination) + 1)
    }

    /// Exchanges two elements, in constant time.
    public mutating func swapAt(_ first: Int, _ second: Int) {
        elements.swapAt(first, second)
        ids.swapAt(first, second)
        positions[ids[first]] = first
        positions[ids[second]] = second
    }

    /// Sorts the elements. If the closure throws, all elements remain, in unspecified order.
    public mutating func sort(by areInIncreasingOrder: (Element, Element) throws -> Bool) rethrows {
        defer {
            ids = elements.map(\.id)
            number(from: 0)
        }
        try elements.sort(by: areInIncreasingOrder)
    }

    private mutating func number(from start: Int, upTo end: Int? = nil) {
        for position in start..<(end ?? ids.count) { positions[ids[position]] = position }
    }

    /// Updates the index after an element was set, so that it is found by its current id.
    fileprivate mutating func didSet(at position: Int) {
        let (old, id) = (ids[position], elements[position].id)
        guard old != id else { return }
        positions[old] = nil
        ids[position] = id
        guard let other = positions.updateValue(position, forKey: id) else { return }
        let (first, second) = (Swift.min(position, other), Swift.max(position, other))
        positions[id] = first
        ids.remove(at: second)
        elements.remove(at: second)
        number(from: second)
    }
}

extension IdentifiedArray: Sendable where ID: Sendable, Element: Sendable {}

extension IdentifiedArray: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { elements.endIndex }

    /// The element at an index. If a change gives it the id of another element, the first of the two stays and the second is
    /// removed.
    public subscript(position: Int) -> Element {
        get { elements[position] }
        _modify {
            // Runs even if the change throws an error.
            defer { didSet(at: position) }
            yield &elements[position]
        }
    }
}

/// An identified array, named by its element type only.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>
