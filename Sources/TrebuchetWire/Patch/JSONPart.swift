/// A value in a draft: a range of a text, or a container that has been opened.
struct JSONPart {
    /// Nil when it is open; then `count` is the number of the container.
    private let start: UnsafeRawPointer?
    let count: Int

    init(_ text: UnsafeRawBufferPointer) {
        // No bytes may have no address, and yet are no open container.
        start = text.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
        count = text.count
    }

    init(container: Int) {
        start = nil
        count = container
    }

    var container: Int? { start == nil ? count : nil }

    /// Empty when it is open.
    var text: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count) }
}
