/// A collection in order whose elements are found by their `id` in constant time.
public struct IdentifiedArray<ID: Hashable, Element> {
    private var elements: [Element] = []
    private var positions: [ID: Int] = [:]
    /// The ids of the elements, in order.
    public private(set) var ids: [ID] = []

    public init() {}

    /// Keeps the first of several elements with the same id.
    public init<S: Sequence>(uniqueElements: S) where S.Element == Element, Element: Identifiable, Element.ID == ID {
        for element in uniqueElements { append(element) }
    }

    /// The element with this id. Setting nil removes it; setting one that is not there appends it.
    ///
    /// The new value must have the same id.
    public subscript(id id: ID) -> Element? {
        get { positions[id].map { elements[$0] } }
        _modify {
            guard let position = positions[id] else {
                var added: Element?
                yield &added
                if let added { append(added, id) }
                return
            }
            var element: Element? = elements[position]
            yield &element
            if let element {
                elements[position] = element
            } else {
                remove(at: position)
            }
        }
    }

    @discardableResult
    public mutating func remove(id: ID) -> Element? {
        positions[id].map { remove(at: $0) }
    }

    @discardableResult
    public mutating func remove(at position: Int) -> Element {
        positions[ids.remove(at: position)] = nil
        for index in position..<ids.count { positions[ids[index]] = index }
        return elements.remove(at: position)
    }

    private mutating func append(_ element: Element, _ id: ID) {
        positions[id] = elements.count
        ids.append(id)
        elements.append(element)
    }
}

extension IdentifiedArray where Element: Identifiable, Element.ID == ID {
    /// Adds an element at the end. One with an id that is there already is not added, and false is returned.
    @discardableResult
    public mutating func append(_ element: Element) -> Bool {
        guard positions[element.id] == nil else { return false }
        append(element, element.id)
        return true
    }
}

extension IdentifiedArray: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { elements.count }
    public subscript(position: Int) -> Element { elements[position] }
}

extension IdentifiedArray: ExpressibleByArrayLiteral where Element: Identifiable, Element.ID == ID {
    public init(arrayLiteral elements: Element...) { self.init(uniqueElements: elements) }
}

extension IdentifiedArray: Equatable where Element: Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.ids == right.ids && left.elements == right.elements }
}

extension IdentifiedArray: Sendable where ID: Sendable, Element: Sendable {}

extension IdentifiedArray: CustomReflectable {
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: elements, displayStyle: .collection) }
}

/// A collection of elements found by their own `id`.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>
