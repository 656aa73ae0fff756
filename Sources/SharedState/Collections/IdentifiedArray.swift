/// An array whose elements have ids, each id at most once, and that finds an element by its id in constant time.
///
/// Adding and removing at the end takes constant time, anywhere else time in proportion to what comes after.
///
/// An element's id may not change in place: setting an element with another id traps. It is no `MutableCollection` for
/// that reason; ``swapAt(_:_:)``, ``move(from:to:)`` and ``sort(by:)`` reorder it.
public struct IdentifiedArray<ID, Element: Identifiable> where Element.ID == ID {
    /// The elements in order.
    public private(set) var elements: [Element]
    /// Where the element with an id stands.
    private var positions: [ID: Int]

    public init() {
        elements = []
        positions = [:]
    }

    /// Traps when two elements have one id.
    public init(uniqueElements elements: some Sequence<Element>) {
        self.init(elements) { _, new in
            preconditionFailure("two elements have the id \(new.id)")
        }
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

    /// The ids in order.
    public var ids: [ID] { elements.map(\.id) }

    /// Where the element with this id stands.
    public func index(id: ID) -> Int? { positions[id] }

    public func contains(id: ID) -> Bool { positions[id] != nil }

    /// The element with this id.
    ///
    /// Setting nil removes it; setting an element whose id is not there appends it. Traps when the element has another
    /// id than the subscript.
    public subscript(id id: ID) -> Element? {
        get { positions[id].map { elements[$0] } }
        set {
            guard let newValue else {
                remove(id: id)
                return
            }
            precondition(newValue.id == id, "an element with the id \(newValue.id) was set at the id \(id)")
            updateOrAppend(newValue)
        }
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

    @discardableResult
    public mutating func remove(id: ID) -> Element? { positions[id].map { remove(at: $0) } }

    @discardableResult
    public mutating func remove(at index: Int) -> Element {
        let removed = elements.remove(at: index)
        positions[removed.id] = nil
        number(from: index)
        return removed
    }

    public mutating func removeAll(where isRemoved: (Element) throws -> Bool) rethrows {
        self = Self(uniqueElements: try elements.filter { try !isRemoved($0) })
    }

    public mutating func removeAll(keepingCapacity: Bool = false) {
        elements.removeAll(keepingCapacity: keepingCapacity)
        positions.removeAll(keepingCapacity: keepingCapacity)
    }

    // MARK: Reordering

    /// Takes the element at `source` out and puts it in, so that it stands at `destination` then.
    public mutating func move(from source: Int, to destination: Int) {
        elements.insert(elements.remove(at: source), at: destination)
        number(from: Swift.min(source, destination), upTo: Swift.max(source, destination) + 1)
    }

    public mutating func swapAt(_ first: Int, _ second: Int) {
        elements.swapAt(first, second)
        positions[elements[first].id] = first
        positions[elements[second].id] = second
    }

    public mutating func sort(by areInIncreasingOrder: (Element, Element) throws -> Bool) rethrows {
        try elements.sort(by: areInIncreasingOrder)
        number(from: 0)
    }

    private mutating func number(from start: Int, upTo end: Int? = nil) {
        for position in start..<(end ?? elements.count) { positions[elements[position].id] = position }
    }
}

extension IdentifiedArray: Sendable where ID: Sendable, Element: Sendable {}

extension IdentifiedArray: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { elements.endIndex }

    /// The element at an index. Traps when an element with another id is set.
    public subscript(position: Int) -> Element {
        get { elements[position] }
        _modify {
            let id = elements[position].id
            yield &elements[position]
            precondition(
                elements[position].id == id,
                "the element at \(position) had the id \(id) and was given \(elements[position].id)")
        }
    }
}

/// An identified array, by the type of its elements alone.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>
