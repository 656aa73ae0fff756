/// A first-in, first-out queue whose `removeFirst` takes constant time.
///
/// It is public and inlinable, so that it is specialized for its elements in the modules that use it. The compiler does not
/// inline `package` symbols across modules, and an event loop uses it several times per turn.
@_documentation(visibility: internal)
public struct WorkQueue<Element> {
    /// The number of elements whose memory is retained when the queue becomes empty.
    @usableFromInline static var retainedCapacity: Int { 1024 }

    /// The elements; those before `first` are removed already.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var first = 0

    /// Creates an empty queue.
    @inlinable public init() {}

    /// The number of queued elements.
    @inlinable public var count: Int { elements.count - first }
    /// True if the queue is empty.
    @inlinable public var isEmpty: Bool { first == elements.count }

    /// Appends an element.
    @inlinable public mutating func append(_ element: Element) { elements.append(element) }

    /// Returns the first element, or nil if the queue is empty.
    @inlinable public func peek() -> Element? { isEmpty ? nil : elements[first] }

    /// Removes and returns the first element. Traps when the queue is empty.
    @inlinable public mutating func removeFirst() -> Element {
        guard let element = elements[first] else { preconditionFailure("removeFirst on an empty queue") }
        elements[first] = nil
        first += 1
        if isEmpty {
            first = 0
            elements.removeAll(keepingCapacity: elements.capacity <= Self.retainedCapacity)
        } else if first >= Self.retainedCapacity, first * 2 >= elements.count {
            elements.removeFirst(first)
            first = 0
        }
        return element
    }
}
