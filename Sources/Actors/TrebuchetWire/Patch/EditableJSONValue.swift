/// A value in a draft: a range of a text, or an open container.
struct EditableJSONValue {
    /// The address of the text, or nil for an open container; then `count` is the number of the container.
    private let start: UnsafeRawPointer?
    let count: Int

    init(_ text: UnsafeRawBufferPointer) {
        // An empty buffer may have no address, but is no open container.
        start = text.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
        count = text.count
    }

    init(container: Int) {
        start = nil
        count = container
    }

    var container: Int? { start == nil ? count : nil }

    /// The text; empty for an open container.
    var text: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count) }
}
