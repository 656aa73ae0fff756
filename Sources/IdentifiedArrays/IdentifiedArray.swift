/// An array whose elements have ids, each id at most once, and that finds an element by its id in constant time.
///
/// Of several elements with one id it keeps the first: the one that is there when another is added, and the one that stands
/// in front when an element is given the id of another in place. ``updateOrAppend(_:)`` replaces instead, and
/// ``init(_:uniquingIDsWith:)`` asks.
///
/// Adding and removing at the end takes constant time, anywhere else time in proportion to what comes after. It is no
/// `MutableCollection`, since setting an element may remove another; ``swapAt(_:_:)``, ``move(from:to:)`` and
/// ``sort(by:)`` reorder it.
public struct IdentifiedArray<ID, Element: Identifiable> where Element.ID == ID {
    /// The elements in order.
    public private(set) var elements: [Element] = []
    /// The ids in order.
    public private(set) var ids: [ID] = []
    /// Where the element with an id stands.
    private var positions: [ID: Int] = [:]

    /// An array without elements.
    public init() {}

    /// Keeps the first of several elements with one id.
    public init(uniqueElements elements: some Sequence<Element>) {
        for element in elements { append(element) }
    }

    /// - Parameter choose: Called with two elements of one id; what it returns takes the place of the first.
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

    /// Where the element with this id stands.
    public func index(id: ID) -> Int? { positions[id] }

    /// Whether an element with this id is there, in constant time.
    public func contains(id: ID) -> Bool { positions[id] != nil }

    /// The element with this id.
    ///
    /// Setting nil removes it; setting an element where there is none appends it. What is set has its own id from then on,
    /// whatever the one is that it was set by.
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

    /// Adds the element at the end, unless one with its id is there; the index is that of the one that is there.
    @discardableResult
    public mutating func append(_ element: Element) -> (inserted: Bool, index: Int) {
        insert(element, at: elements.endIndex)
    }

    /// Adds each element that has a new id.
    public mutating func append(contentsOf elements: some Sequence<Element>) {
        for element in elements { append(element) }
    }

    /// Adds the element at an index, unless one with its id is there; the index is that of the one that is there.
    @discardableResult
    public mutating func insert(_ element: Element, at index: Int) -> (inserted: Bool, index: Int) {
        if let present = positions[element.id] { return (false, present) }
        elements.insert(element, at: index)
        ids.insert(element.id, at: index)
        number(from: index)
        return (true, index)
    }

    /// Replaces the element with the same id, which is returned, or adds the new one at the end.
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

    /// Removes the element with this id, which is returned, if there is one.
    @discardableResult
    public mutating func remove(id: ID) -> Element? { positions[id].map { remove(at: $0) } }

    /// Removes the element at an index, which is returned. Traps for an index that is none.
    @discardableResult
    public mutating func remove(at index: Int) -> Element {
        positions[ids.remove(at: index)] = nil
        defer { number(from: index) }
        return elements.remove(at: index)
    }

    /// Removes the elements of which `isRemoved` is true; the others keep their order. When it throws, nothing is removed.
    public mutating func removeAll(where isRemoved: (Element) throws -> Bool) rethrows {
        self = Self(uniqueElements: try elements.filter { try !isRemoved($0) })
    }

    /// Removes all elements.
    ///
    /// - Parameter keepingCapacity: whether the memory is kept for others. Default false.
    public mutating func removeAll(keepingCapacity: Bool = false) {
        elements.removeAll(keepingCapacity: keepingCapacity)
        ids.removeAll(keepingCapacity: keepingCapacity)
        positions.removeAll(keepingCapacity: keepingCapacity)
    }

    // MARK: Reordering

    /// Takes the element at `source` out and puts it in, so that it stands at `destination` then.
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

    /// Sorts the elements. When the closure throws, they are all there, in some order.
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

    /// An element was set: it is found by the id that it has.
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

    /// The element at an index. When it is given the id of another, the one in front stays and the other is removed.
    public subscript(position: Int) -> Element {
        get { elements[position] }
        _modify {
            // Also when an error is thrown out of the change.
            defer { didSet(at: position) }
            yield &elements[position]
        }
    }
}

/// An identified array, by the type of its elements alone.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>
