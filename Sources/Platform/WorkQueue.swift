/// What is to be done in its order; taking the first costs the same however many wait.
///
/// Inlinable, so that it is specialised for its elements in the modules that use it.
package struct WorkQueue<Element> {
    /// Memory for so many is kept when nothing waits.
    @usableFromInline static var most: Int { 1024 }

    /// Those before `first` are done.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var first = 0

    @inlinable package init() {}

    @inlinable package var count: Int { elements.count - first }
    @inlinable package var isEmpty: Bool { first == elements.count }

    @inlinable package mutating func append(_ element: Element) { elements.append(element) }

    /// There is one.
    @inlinable package mutating func removeFirst() -> Element {
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
