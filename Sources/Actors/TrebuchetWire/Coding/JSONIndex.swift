/// An index of the values in a JSON text, with one entry for each value. The entries of arrays and objects precede those of their
/// content, so that each value can be skipped in one step. One pass creates the index and validates all of the text.
///
/// It owns its memory behind pointers: reading a value accesses the index for each of its parts.
struct JSONIndex: ~Copyable {
    /// The entry of a value.
    struct Mark {
        /// The offset of the value in the text; for a name, the offset behind its quote, or in `names` if it had escapes.
        var start: UInt32
        /// For arrays and objects, the index behind the value. For others the number of bytes; for strings without their quotes,
        /// doubled, plus one if there are escapes.
        var info: UInt32

        /// The length of a string or name.
        var count: Int { Int(info >> 1) }
        var isEscaped: Bool { info & 1 == 1 }
    }

    /// The second entry of an array or object: the index of the name to be tried first, and the number of elements or members.
    typealias Extra = Mark

    private(set) var marks: UnsafeMutablePointer<Mark>
    private var capacity = 64
    private(set) var count = 0
    /// Unescaped names, concatenated. They never need more space than the text.
    private(set) var names: UnsafeMutablePointer<UInt8>?
    private var nameBytes = 0
    private var hashes: UnsafeMutablePointer<UInt32>
    private var hashCapacity = 64

    /// A flag in an object's count: it may have duplicate names. Then the first one counts, as with Foundation.
    static let mayRepeat: UInt32 = 1 << 31
    /// The maximum number of names that are compared while scanning.
    private static let comparedNames = 32

    init() {
        marks = .allocate(capacity: capacity)
        hashes = .allocate(capacity: hashCapacity)
    }

    deinit {
        marks.deallocate()
        hashes.deallocate()
        names?.deallocate()
    }

    /// Scans a text, which the cursor must contain completely.
    mutating func scan(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        clear()
        guard cursor.end <= Int32.max else { throw cursor.error("the text is too long") }
        try value(&cursor, level: 0, hashesBefore: 0)
        try cursor.expectEnd()
    }

    /// Removes all entries, and frees the memory that was allocated for a large text.
    mutating func clear() {
        count = 0
        names?.deallocate()
        names = nil
        nameBytes = 0
        guard capacity > 1 << 14 else { return }
        marks.deallocate()
        capacity = 64
        marks = .allocate(capacity: capacity)
    }

    /// Turns all entries into null; the text becomes `n`.
    mutating func erase() {
        if count == 0 { append(0, 0) }
        for index in 0..<count { marks[index] = Mark(start: 0, info: 0) }
    }

    @inline(__always)
    private mutating func append(_ start: Int, _ info: Int) {
        if count == capacity { grow() }
        (marks + count).initialize(
            to: Mark(start: UInt32(truncatingIfNeeded: start), info: UInt32(truncatingIfNeeded: info)))
        count &+= 1
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<Mark>.allocate(capacity: 2 * capacity)
        larger.update(from: marks, count: count)
        marks.deallocate()
        marks = larger
        capacity *= 2
    }

    private mutating func value(_ cursor: inout JSONCursor, level: Int, hashesBefore: Int) throws(EnvelopeError) {
        switch cursor.peek() {
        case 0x22:
            let start = cursor.at
            let text = try cursor.string()
            append(start, Int(text.count) << 1 | (text.isEscaped ? 1 : 0))
        case 0x5B:
            let mark = try startContainer(&cursor, level)
            var (isFirst, elements) = (true, 0)
            while try cursor.hasElement(&isFirst) {
                try value(&cursor, level: level + 1, hashesBefore: hashesBefore)
                elements += 1
            }
            endContainer(mark, elements, 0)
        case 0x7B:
            let mark = try startContainer(&cursor, level)
            var (isFirst, members, mayRepeat) = (true, 0, false)
            while let range = try cursor.name(&isFirst) {
                let name = name(range, cursor)
                if members < Self.comparedNames {
                    let hash = NameTable.quickHash(name)
                    if hashesBefore + members == hashCapacity { growHashes() }
                    let own = hashes + hashesBefore
                    for index in 0..<members where own[index] == hash { mayRepeat = true }
                    (own + members).initialize(to: hash)
                }
                try value(&cursor, level: level + 1, hashesBefore: hashesBefore + min(members + 1, Self.comparedNames))
                members += 1
            }
            endContainer(mark, members, mayRepeat || members > Self.comparedNames ? Self.mayRepeat : 0)
        case 0x2D, 0x30...0x39:
            let start = cursor.at
            try cursor.number()
            append(start, cursor.at - start)
        default:
            let range = try cursor.value()
            append(Int(range.offset), Int(range.count))
        }
    }

    private mutating func startContainer(_ cursor: inout JSONCursor, _ level: Int) throws(EnvelopeError) -> Int {
        guard level < JSONWriter.maximumDepth else {
            throw cursor.error("values nest deeper than \(JSONWriter.maximumDepth)")
        }
        let mark = count
        append(cursor.at, 0)
        append(mark + 2, 0)
        cursor.at += 1
        return mark
    }

    private mutating func endContainer(_ mark: Int, _ elements: Int, _ flag: UInt32) {
        marks[mark].info = UInt32(truncatingIfNeeded: count)
        marks[mark + 1].info = UInt32(truncatingIfNeeded: elements) | flag
    }

    /// Adds an entry for a name, and returns the bytes of the name.
    @inline(__always)
    private mutating func name(_ range: ByteRange, _ cursor: JSONCursor) -> UnsafeRawBufferPointer {
        let bytes = cursor.bytes(range)
        guard range.isEscaped else {
            append(Int(range.offset), bytes.count << 1)
            return bytes
        }
        return unescapedName(bytes, cursor)
    }

    private mutating func unescapedName(_ bytes: UnsafeRawBufferPointer, _ cursor: JSONCursor) -> UnsafeRawBufferPointer
    {
        let plain = JSONString.unescaped(bytes)
        let names = names ?? .allocate(capacity: cursor.end)
        self.names = names
        (names + nameBytes).initialize(from: plain, count: plain.count)
        append(nameBytes, plain.count << 1 | 1)
        defer { nameBytes += plain.count }
        return UnsafeRawBufferPointer(start: names + nameBytes, count: plain.count)
    }

    private mutating func growHashes() {
        let larger = UnsafeMutablePointer<UInt32>.allocate(capacity: 2 * hashCapacity)
        larger.update(from: hashes, count: hashCapacity)
        hashes.deallocate()
        hashes = larger
        hashCapacity *= 2
    }
}
