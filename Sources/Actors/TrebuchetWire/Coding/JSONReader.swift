#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A decoder that reads values from JSON text in place.
///
/// A value is identified by its mark, an offset in the `JSONIndex`, which locates all values. Finding a member therefore does not read
/// the members before it, and the path to a value is computed only on demand.
final class JSONReader {
    let userInfo: [CodingUserInfoKey: any Sendable]

    /// The text. It is valid during the decoding; then `close` replaces it.
    @exclusivity(unchecked) private(set) var text = JSONCursor(UnsafeRawBufferPointer(start: nil, count: 0))
    // Unchecked, like the others, because a check would cost more than most reads: no code here calls other code during a change.
    @exclusivity(unchecked) private var jsonIndex = JSONIndex()
    /// True if `jsonIndex` describes the text.
    @exclusivity(unchecked) private(set) var isScanned = false
    /// True if a value has read all of the text itself.
    @exclusivity(unchecked) var isInUse = false
    /// The offset at which generated code met unknown text; -1 if it did not.
    @exclusivity(unchecked) private var unknownAt = -1
    /// The values that are being decoded, each inside the previous one.
    @exclusivity(unchecked) private var scopes: [Scope] = []
    let arrays = ArrayTypeCache()
    @exclusivity(unchecked) var keyed = KeyedContainerPool<KeyedDecodingState>()
    /// True while containers are pooled. False once a decoder is retained beyond the decoding, because its release is not
    /// observable.
    @exclusivity(unchecked) private(set) var isPooling = true
    /// The name tables of large objects, by the objects' marks.
    @exclusivity(unchecked) private var tables: [Int: NameTable] = [:]

    /// The mark of the null that represents an absent superclass.
    static let noMark = -1
    private static let unread: StaticString = "n"

    /// A value that is being decoded.
    private struct Scope {
        let value: Int32
        /// The array or object that contains it, and the step to it: the mark of its name, or its index. -1 without a container.
        let container: Int32
        let step: Int32
    }

    init(userInfo: [CodingUserInfoKey: any Sendable]) { self.userInfo = userInfo }

    // MARK: The text

    func decode<Value: Decodable>(_ type: Value.Type, from bytes: UnsafeRawBufferPointer) throws -> Value {
        // A byte order mark is allowed and ignored.
        let hasMark = bytes.count >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF
        text = JSONCursor(hasMark ? UnsafeRawBufferPointer(rebasing: bytes[3...]) : bytes)
        isInUse = false
        unknownAt = -1
        if Self.isReadHere(type) {
            try scan()
            return try read(type, 0, in: Self.noMark, 0)
        }
        let value = try Value(from: ValueDecoder(reader: self, mark: 0))
        // The value may have read nothing; the text must be valid nevertheless.
        if !isInUse { try scan() }
        return value
    }

    /// Scans the text once. Values that read themselves do not need this.
    @inline(__always)
    func scan() throws {
        if !isScanned { try scanText() }
    }

    private func scanText() throws {
        var cursor = text
        do {
            try jsonIndex.scan(&cursor)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "not valid JSON: \(error.message)"))
        }
        isScanned = true
    }

    /// Ends the decoding. If a decoder is still retained, all values that it reads afterwards are null.
    func close(isRetained: Bool) {
        scopes.removeAll(keepingCapacity: true)
        if !tables.isEmpty { tables = [:] }
        if isRetained { jsonIndex.erase() } else { jsonIndex.clear() }
        isScanned = isRetained
        isPooling = !isRetained
        text = JSONCursor(UnsafeRawBufferPointer(start: Self.unread.utf8Start, count: 1))
    }

    /// Returns a cursor at a value, or at the start of the text if it is not scanned.
    func cursor(at mark: Int) -> JSONCursor {
        var cursor = text
        if isScanned, mark != Self.noMark { cursor.at = Int(jsonIndex.marks[mark].start) }
        return cursor
    }

    /// Reads a value by the code generated for its type, or returns nil if that does not support the text.
    func wireValue<Value: _WireValue>(_ type: Value.Type, _ mark: Int) -> Value? {
        let start = cursor(at: mark)
        // A reader that starts before the position of an earlier failure would probably fail there too; this avoids scanning text
        // repeatedly.
        guard start.at > unknownAt else { return nil }
        var wire = _WireReader(start, source: self)
        do {
            let value = try Value(_wire: &wire)
            if !isScanned { try wire.expectEnd() }
            isInUse = true
            return value
        } catch {
            unknownAt = wire.cursor.at
            return nil
        }
    }

    // MARK: Marks

    /// Returns the first byte of a value, which identifies its kind.
    @inline(__always)
    func first(_ mark: Int) -> UInt8 {
        mark == Self.noMark ? UInt8(ascii: "n") : text.base[Int(jsonIndex.marks[mark].start)]
    }

    @inline(__always)
    func isNull(_ mark: Int) -> Bool { first(mark) == UInt8(ascii: "n") }

    @inline(__always)
    func mark(_ mark: Int) -> JSONIndex.Mark { jsonIndex.marks[mark] }

    /// Returns the bytes of a number or literal.
    @inline(__always)
    func bytes(_ mark: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: text.base + Int(jsonIndex.marks[mark].start), count: Int(jsonIndex.marks[mark].info))
    }

    /// Returns the bytes between the quotes of a string.
    @inline(__always)
    func inner(_ mark: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: text.base + Int(jsonIndex.marks[mark].start) + 1, count: jsonIndex.marks[mark].count)
    }

    /// Returns the mark behind an array or object.
    @inline(__always)
    func endMark(of mark: Int) -> Int { Int(jsonIndex.marks[mark].info) }

    func count(_ mark: Int) -> Int { Int(jsonIndex.marks[mark + 1].info & ~JSONIndex.mayRepeat) }

    /// Returns the mark behind a value.
    @inline(__always)
    func next(_ mark: Int) -> Int {
        let first = text.base[Int(jsonIndex.marks[mark].start)]
        return first == 0x7B || first == 0x5B ? Int(jsonIndex.marks[mark].info) : mark &+ 1
    }

    @inline(__always)
    func name(_ mark: Int) -> UnsafeRawBufferPointer {
        let name = jsonIndex.marks[mark]
        let base = name.isEscaped ? UnsafePointer(jsonIndex.names.unsafelyUnwrapped) : text.base
        return UnsafeRawBufferPointer(start: base + Int(name.start), count: name.count)
    }

    // MARK: Members

    /// Returns the mark of a member's value, or nil if the object has no such member. The search starts behind the last member
    /// found with `isTaken`, because members are usually read in order.
    @inline(__always)
    func member(_ name: String, of object: Int, isTaken: Bool) -> Int? {
        var name = name
        return name.withUTF8 { find(UnsafeRawBufferPointer($0), in: object, isTaken) }
    }

    private func find(_ name: UnsafeRawBufferPointer, in object: Int, _ isTaken: Bool) -> Int? {
        if jsonIndex.marks[object + 1].info & JSONIndex.mayRepeat != 0, repeatsNames(object) {
            return markInTable(name, object).map { $0 + 1 }
        }
        let likely = Int(jsonIndex.marks[object + 1].start)
        guard
            let found = likely < endMark(of: object) && isName(likely, name)
                ? likely : search(name, in: object, from: likely)
        else { return nil }
        if isTaken { jsonIndex.marks[object + 1].start = UInt32(truncatingIfNeeded: next(found + 1)) }
        return found + 1
    }

    @inline(__always)
    private func isName(_ mark: Int, _ name: UnsafeRawBufferPointer) -> Bool {
        let own = jsonIndex.marks[mark]
        guard own.count == name.count else { return false }
        return name.isEmpty || JSONString.isSame(self.name(mark).baseAddress!, name.baseAddress!, name.count)
    }

    /// The number of members above which an object is searched by a table.
    private static let maximumScannedMembers = 24

    private func search(_ name: UnsafeRawBufferPointer, in object: Int, from likely: Int) -> Int? {
        guard count(object) <= Self.maximumScannedMembers else { return markInTable(name, object) }
        let end = endMark(of: object)
        for (first, last) in [(likely, end), (object + 2, likely)] {
            var mark = first
            while mark < last {
                if isName(mark, name) { return mark }
                mark = next(mark + 1)
            }
        }
        return nil
    }

    /// Returns whether an object that may have a duplicate name has one.
    private func repeatsNames(_ object: Int) -> Bool {
        guard tables[object] == nil else { return true }
        guard !makeTable(of: object) else { return true }
        jsonIndex.marks[object + 1].info &= ~JSONIndex.mayRepeat
        return false
    }

    private func markInTable(_ name: UnsafeRawBufferPointer, _ object: Int) -> Int? {
        if tables[object] == nil { _ = makeTable(of: object) }
        return tables[object]?.index(of: name) { self.name($0) }
    }

    /// Creates the name table of an object, in which the first of several members with a name counts. Returns whether a name
    /// occurs twice.
    private func makeTable(of object: Int) -> Bool {
        var table = NameTable(capacity: count(object))
        var hasRepeated = false
        var mark = object + 2
        while mark < endMark(of: object) {
            if table.insert(name(mark), mark, { self.name($0) }) != mark { hasRepeated = true }
            mark = next(mark + 1)
        }
        tables[object] = table
        return hasRepeated
    }

    /// Returns the distinct names of an object.
    func names(of object: Int) -> [String] {
        let isRepeating = jsonIndex.marks[object + 1].info & JSONIndex.mayRepeat != 0 && repeatsNames(object)
        var names: [String] = []
        names.reserveCapacity(count(object))
        var mark = object + 2
        while mark < endMark(of: object) {
            if !isRepeating || markInTable(name(mark), object) == mark {
                names.append(String(decoding: name(mark), as: UTF8.self))
            }
            mark = next(mark + 1)
        }
        return names
    }

    // MARK: Nested values

    /// Decodes a value by its `init(from:)`.
    func decodeScope<Value: Decodable>(
        _ type: Value.Type, _ mark: Int, in container: Int, _ step: Int
    ) throws -> Value {
        guard scopes.count < JSONWriter.deepestScopes else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "\(type) decodes itself recursively"))
        }
        scopes.append(
            Scope(
                value: Int32(truncatingIfNeeded: mark), container: Int32(truncatingIfNeeded: container),
                step: Int32(truncatingIfNeeded: step)))
        defer { scopes.removeLast() }
        return try Value(from: ValueDecoder(reader: self, mark: mark))
    }

    /// Returns the path to a value. The values that are being decoded know their own steps, so this is fast even in large arrays.
    func path(to mark: Int) -> [any CodingKey] {
        guard isScanned, mark > 0, mark < jsonIndex.count else { return [] }
        var path: [any CodingKey] = []
        var reached = 0
        for scope in scopes {
            let value = Int(scope.value)
            guard value != Self.noMark, value <= mark, mark < max(next(value), value + 1) else { break }
            if scope.container >= 0, value != reached {
                descend(from: reached, to: Int(scope.container), &path)
                path.append(step(scope.step, in: Int(scope.container)))
                reached = value
            }
        }
        descend(from: reached, to: mark, &path)
        return path
    }

    private func step(_ step: Int32, in container: Int) -> any CodingKey {
        guard first(container) == 0x7B else { return JSONStep(index: Int(step)) }
        return JSONStep(stringValue: String(decoding: name(Int(step)), as: UTF8.self))
    }

    private func descend(from outer: Int, to mark: Int, _ path: inout [any CodingKey]) {
        var outer = outer
        while outer < mark {
            let isObject = first(outer) == 0x7B
            guard isObject || first(outer) == 0x5B, mark < endMark(of: outer) else { return }
            var (child, index) = (outer + 2, 0)
            while true {
                let value = isObject ? child + 1 : child
                guard value < endMark(of: outer) else { return }
                if mark < next(value) {
                    path.append(step(Int32(truncatingIfNeeded: isObject ? child : index), in: outer))
                    outer = value
                    break
                }
                (child, index) = (next(value), index + 1)
            }
        }
    }
}
