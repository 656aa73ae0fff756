internal import Bytes

/// The computation of one patch.
///
/// Two versions of a state usually differ only in a few bytes. The bytes are therefore compared first, from both ends. The
/// structure is then parsed only up to the first difference, and from there to the point where the texts converge again.
struct JSONDifference: ~Copyable {
    /// The reason to stop the computation.
    enum Stop: Error {
        /// The patch would be too long.
        case pastLimit
        case notJSON
    }

    let old: UnsafeRawBufferPointer
    let new: UnsafeRawBufferPointer
    /// The current path, escaped for a JSON string.
    private var path: [UInt8] = []
    private var output = ByteBuffer()
    /// The maximum size of the output in bytes.
    private var limit: Int

    init(from old: UnsafeRawBufferPointer, to new: UnsafeRawBufferPointer, maximumBytes: Int) {
        self.old = old
        self.new = new
        // Less than the maximum, including the closing bracket.
        limit = maximumBytes - 2
    }

    mutating func patch() -> [UInt8]? {
        do throws(Stop) {
            output.append(0x5B)
            try compare(Self.trimmed(old), Self.trimmed(new), depth: 0)
            guard output.count <= limit else { return nil }
            output.append(0x5D)
            return Array(output.bytes)
        } catch {
            return nil
        }
    }

    private static func trimmed(_ text: UnsafeRawBufferPointer) -> Range<Int> {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
        let start = text.firstIndex { !isSpace($0) } ?? text.count
        let end = text.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start
        return start..<end
    }

    // MARK: Values

    /// Writes operations that transform the old value into the new one: changes of its parts, or the new value if that is
    /// shorter. `depth` is the number of containers around them.
    mutating func compare(_ before: Range<Int>, _ after: Range<Int>, depth: Int) throws(Stop) {
        if hasSameBytes(before, after) { return }
        guard before.count > 1, after.count > 1, old[before.lowerBound] == new[after.lowerBound],
            [0x7B, 0x5B].contains(old[before.lowerBound])
        else { return try replace(after) }
        let (mark, pathCount, outerLimit) = (output.count, path.count, limit)
        limit = min(limit, mark + replacementCount(after.count, at: mark))
        defer { limit = outerLimit }
        do throws(Stop) {
            let shared = shared(before, after)
            let span = try ChangedSpan.find(before, after, shared: shared, depth: depth, old: old, new: new)
            for frame in span.frames.dropLast() {
                if frame.isObject { push(frame.name) } else { push(index: frame.index) }
            }
            try changes(in: span, depth: depth + span.frames.count)
            path.removeLast(path.count - pathCount)
        } catch {
            guard error == .pastLimit else { throw error }
            limit = outerLimit
            output.truncate(to: mark)
            path.removeLast(path.count - pathCount)
            try replace(after)
        }
    }

    /// Writes the changes within one container, or the whole container if that is shorter.
    private mutating func changes(in span: ChangedSpan, depth: Int) throws(Stop) {
        let mark = output.count
        let pathCount = path.count
        do throws(Stop) {
            if span.frame.isObject {
                try compareMembers(span.oldChildren, span.newChildren, depth: depth)
            } else {
                try compareElements(span, depth: depth)
            }
            // While the changes are shorter than the known part of the container, its end is irrelevant.
            if output.count - mark <= replacementCount(span.knownNewCount, at: mark) { return }
        } catch {
            guard error == .pastLimit else { throw error }
            output.truncate(to: mark)
            path.removeLast(path.count - pathCount)
            return try replace(span.newContainer(in: new, depth: depth - 1))
        }
        let whole = try span.newContainer(in: new, depth: depth - 1)
        guard output.count - mark > replacementCount(whole.count, at: mark) else { return }
        output.truncate(to: mark)
        try replace(whole)
    }

    func hasSameBytes(_ before: Range<Int>, _ after: Range<Int>) -> Bool {
        UnsafeRawBufferPointer(rebasing: old[before]).hasSameBytes(UnsafeRawBufferPointer(rebasing: new[after]))
    }

    /// Returns the numbers of common bytes at the start and the end, without overlap.
    private func shared(_ before: Range<Int>, _ after: Range<Int>) -> (start: Int, end: Int) {
        let most = min(before.count, after.count)
        let old = self.old.baseAddress.unsafelyUnwrapped
        let new = self.new.baseAddress.unsafelyUnwrapped
        func word(_ text: UnsafeRawPointer, _ at: Int) -> UInt64 {
            text.loadUnaligned(fromByteOffset: at, as: UInt64.self)
        }
        func byte(_ text: UnsafeRawPointer, _ at: Int) -> UInt8 { text.load(fromByteOffset: at, as: UInt8.self) }
        var start = 0
        let (left, right) = (before.lowerBound, after.lowerBound)
        while start + 8 <= most, word(old, left + start) == word(new, right + start) { start += 8 }
        while start < most, byte(old, left + start) == byte(new, right + start) { start += 1 }
        var end = 0
        let (leftEnd, rightEnd) = (before.upperBound, after.upperBound)
        while end + 8 <= most - start, word(old, leftEnd - end - 8) == word(new, rightEnd - end - 8) { end += 8 }
        while end < most - start, byte(old, leftEnd - end - 1) == byte(new, rightEnd - end - 1) { end += 1 }
        return (start, end)
    }

    // MARK: The path

    mutating func push(_ name: JSONName) {
        path.append(0x2F)
        guard name.isEscaped else {
            for byte in name.bytes { JSONPointer.appendEscaped(byte, to: &path) }
            return
        }
        var token: [UInt8] = []
        for byte in name.content { JSONPointer.appendEscaped(byte, to: &token) }
        var quoted = ByteBuffer()
        token.withUnsafeBytes { JSONString.append($0, to: &quoted) }
        path.append(contentsOf: quoted.bytes[1..<quoted.count - 1])
    }

    mutating func push(index: Int) {
        path.append(0x2F)
        path.append(contentsOf: String(index).utf8)
    }

    /// Appends the path token for the position behind the last element.
    mutating func pushEnd() { path.append(contentsOf: [0x2F, 0x2D]) }

    /// Removes the last token.
    mutating func pop() {
        while path.removeLast() != 0x2F {}
    }

    // MARK: Operations

    mutating func appendAddition(_ value: Range<Int>) throws(Stop) { try write("add", value) }

    mutating func replace(_ value: Range<Int>) throws(Stop) { try write("replace", value) }

    mutating func remove() throws(Stop) { try write("remove", nil) }

    /// Returns the size of a `replace` with a value of this size, written behind `mark` bytes.
    private func replacementCount(_ valueCount: Int, at mark: Int) -> Int {
        (mark > 1 ? 1 : 0) + #"{"op":"replace","path":"","value":}"#.utf8.count + path.count + valueCount
    }

    private mutating func write(_ operation: StaticString, _ value: Range<Int>?) throws(Stop) {
        // Checked before writing, so that discarded output stays within the limit too.
        guard output.count + path.count + (value?.count ?? 0) <= limit else { throw .pastLimit }
        if output.count > 1 { output.append(0x2C) }
        output.append(#"{"op":""# as StaticString)
        output.append(operation)
        output.append(#"","path":""# as StaticString)
        output.append(path)
        output.append(0x22)
        if let value {
            output.append(#","value":"# as StaticString)
            output.append(UnsafeRawBufferPointer(rebasing: new[value]))
        }
        output.append(0x7D)
        guard output.count <= limit else { throw .pastLimit }
    }
}
