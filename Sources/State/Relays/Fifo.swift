/// A first-in, first-out queue that does not move the remaining elements at each removal.
///
/// Inlinable, so that it is specialised for its elements in the modules that use it.
package struct Fifo<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { head == elements.count }
    @inlinable package var count: Int { elements.count - head }

    @inlinable package mutating func append(_ element: Element) { elements.append(element) }

    @inlinable package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head].take()
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head < 64)
            head = 0
        } else if head >= 32, head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Removes and returns the first matching element, at any position.
    @inlinable package mutating func removeFirst(where fits: (Element) -> Bool) -> Element? {
        guard let index = elements[head...].firstIndex(where: { $0.map(fits) ?? false }) else { return nil }
        return elements.remove(at: index)
    }
}

extension Fifo: Sendable where Element: Sendable {}
