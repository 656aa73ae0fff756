/// What is to be done in its order; taking the first costs the same however many wait.
///
/// Public and inlinable, so that it is specialised for its elements in the modules that use it: the compiler inlines nothing that is
/// `package` into other modules, and a turn asks it several times.
@_documentation(visibility: internal)
public struct WorkQueue<Element> {
    /// Memory for so many is kept when nothing waits.
    @usableFromInline static var most: Int { 1024 }

    /// Those before `first` are done.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var first = 0

    /// One in which nothing waits.
    @inlinable public init() {}

    /// How many wait.
    @inlinable public var count: Int { elements.count - first }
    /// Whether nothing waits.
    @inlinable public var isEmpty: Bool { first == elements.count }

    /// Puts it behind all that wait.
    @inlinable public mutating func append(_ element: Element) { elements.append(element) }

    /// Takes the first; there has to be one.
    @inlinable public mutating func removeFirst() -> Element {
        guard let element = elements[first] else { preconditionFailure("done twice") }
        elements[first] = nil
        first += 1
        if isEmpty {
            first = 0
            elements.removeAll(keepingCapacity: elements.capacity <= Self.most)
        } else if first >= Self.most, first * 2 >= elements.count {
            elements.removeFirst(first)
            first = 0
        }
        return element
    }
}
