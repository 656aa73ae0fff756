/// Writes parts one behind the other, copying at once what already lies so in a text.
struct PartWriter {
    private let target: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    /// Bytes that are to be copied next.
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

    /// Appends a mark that comes before `next`, which is appended after it; the two may be in one text already.
    mutating func append(_ mark: UInt8, before next: UnsafeRawBufferPointer) {
        // Where one byte lies between the run and what comes next, it belongs to the text of both: other memory is not
        // that near, as blocks of memory have heads.
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
