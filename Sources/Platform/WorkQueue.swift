/// What is to be done in its order; taking the first costs the same however many wait.
package struct WorkQueue<Element> {
    /// Memory for so many is kept when nothing waits.
    private static var most: Int { 1024 }

    /// Those before `first` are done.
    private var elements: [Element?] = []
    private var first = 0

    package init() {}

    package var count: Int { elements.count - first }
    package var isEmpty: Bool { first == elements.count }

    package mutating func append(_ element: Element) { elements.append(element) }

    /// There is one.
    package mutating func removeFirst() -> Element {
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
