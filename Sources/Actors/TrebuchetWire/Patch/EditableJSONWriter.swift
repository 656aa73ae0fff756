/// A writer of successive parts that copies adjacent parts of a text in one step.
struct EditableJSONWriter {
    private let target: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    /// The bytes to be copied next.
    private var run = UnsafeRawBufferPointer(start: nil, count: 0)

    init(_ target: UnsafeMutableRawBufferPointer) { self.target = target }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if let end = runEnd, end == bytes.baseAddress {
            run = UnsafeRawBufferPointer(start: run.baseAddress, count: run.count + bytes.count)
        } else {
            flush()
            run = bytes
        }
    }

    /// Appends a delimiter that precedes `next`, which is appended afterwards. The two may already be adjacent in one text.
    mutating func append(_ mark: UInt8, before next: UnsafeRawBufferPointer) {
        // If exactly one byte separates the run and the next part, it belongs to the text of both: separate allocations are never
        // that close, because they have headers.
        if let end = runEnd, let start = next.baseAddress, end + 1 == start, end.load(as: UInt8.self) == mark {
            run = UnsafeRawBufferPointer(start: run.baseAddress, count: run.count + 1)
        } else {
            append(mark)
        }
    }

    mutating func append(_ mark: UInt8) {
        flush()
        target[count] = mark
        count += 1
    }

    mutating func flush() {
        guard run.count > 0 else { return }
        UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyMemory(from: run)
        count += run.count
        run = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    private var runEnd: UnsafeRawPointer? { run.baseAddress.map { $0 + run.count } }
}
