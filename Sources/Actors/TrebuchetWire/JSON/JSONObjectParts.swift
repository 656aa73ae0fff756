internal import Bytes
#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The buffer of an object: a header of 8 bytes, the index, the canonical text, and the trailer of a document (`DocumentBuffer`).
///
/// The header has the number of members, the nesting depth and flags. The index has two positions in the text for each member,
/// in the order of their names: the first byte of the name and of the value.
@usableFromInline
package struct JSONObjectParts {
    // Computed, so that other modules have them as constants.
    @inlinable static var headerCount: Int { 8 }
    /// The flags of the header.
    @inlinable static var wideNumbers: UInt8 { 1 }
    @inlinable static var longIndex: UInt8 { 2 }
    @inlinable package static var trailer: UInt8 { 4 }
    /// The position of the flags, and of those of a trailer.
    @inlinable package static var flagsPlace: Int { 5 }
    @inlinable package static var trailerFlagsPlace: Int { 6 }

    @usableFromInline let count: Int
    /// At least the nesting depth of arrays and objects.
    @usableFromInline let depth: Int
    /// True when a number may be equal to one with another text: a whole number of 2^53 or more that is not written as one.
    @usableFromInline let hasWideNumbers: Bool
    @usableFromInline let text: UnsafeRawBufferPointer
    @usableFromInline let index: UnsafeRawPointer
    @usableFromInline let isLong: Bool

    @inlinable
    init(_ buffer: UnsafeRawBufferPointer) {
        let base = buffer.baseAddress.unsafelyUnwrapped
        count = Int(base.loadUnaligned(as: UInt32.self))
        depth = Int(base.load(fromByteOffset: 4, as: UInt8.self))
        let flags = base.load(fromByteOffset: Self.flagsPlace, as: UInt8.self)
        hasWideNumbers = flags & Self.wideNumbers != 0
        isLong = flags & Self.longIndex != 0
        index = base + Self.headerCount
        let start = Self.headerCount + 2 * count * (isLong ? 4 : 2)
        let end = flags & Self.trailer == 0 ? buffer.count : buffer.count - Self.trailerCount(buffer)
        text = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
    }

    /// Returns the number of bytes of the trailer of a buffer that has one: its last four bytes.
    @inlinable @inline(__always)
    package static func trailerCount(_ buffer: UnsafeRawBufferPointer) -> Int {
        Int(buffer.loadUnaligned(fromByteOffset: buffer.count - 4, as: UInt32.self))
    }

    /// Returns the index behind the text in the buffer of these parts.
    package func textEnd(in buffer: UnsafeRawBufferPointer) -> Int {
        text.baseAddress.unsafelyUnwrapped + text.count - buffer.baseAddress.unsafelyUnwrapped
    }

    @inline(__always)
    private func position(_ entry: Int) -> Int {
        isLong
            ? Int(index.loadUnaligned(fromByteOffset: 4 &* entry, as: UInt32.self))
            : Int(index.loadUnaligned(fromByteOffset: 2 &* entry, as: UInt16.self))
    }

    @inline(__always) func nameStart(_ member: Int) -> Int { position(2 &* member) }
    @inline(__always) func valueStart(_ member: Int) -> Int { position(2 &* member &+ 1) }
    /// The index behind the value.
    @inline(__always)
    func valueEnd(_ member: Int) -> Int {
        member + 1 < count ? position(2 &* member &+ 2) - 2 : text.count - 1
    }

    /// The name as it is in the text, without quotes.
    func name(_ member: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[nameStart(member)..<valueStart(member) - 2])
    }

    func decodedName(_ member: Int) -> String { CanonicalJSON.string(name(member)) }

    @usableFromInline
    func value(_ member: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[valueStart(member)..<valueEnd(member)])
    }

    /// Returns the index of a member, nil in `found` when there is none, or the index at which it belongs.
    ///
    /// - Parameter name: as in the text.
    @usableFromInline
    func place(of name: UnsafeRawBufferPointer) -> (found: Int?, index: Int) {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            let order = CanonicalJSON.compareNames(self.name(middle), name)
            if order == 0 { return (middle, middle) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (nil, low)
    }

    /// Calls `body` with a name as it is in a canonical text.
    @inlinable
    package static func withCanonical<Result>(
        _ name: String, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        let plain = try name.utf8.withContiguousStorageIfAvailable { bytes -> Result? in
            for byte in bytes where byte < 0x20 || byte == 0x22 || byte == 0x5C { return nil }
            return try body(UnsafeRawBufferPointer(bytes))
        }
        if case .some(.some(let result)) = plain { return result }
        return try escaped(name).withUnsafeBytes { try body($0) }
    }

    /// Returns a name as it is in a canonical text.
    @usableFromInline
    static func escaped(_ name: String) -> [UInt8] {
        var text = ByteBuffer()
        JSONString.append(name, to: &text)
        return Array(text.bytes[1..<text.count - 1])
    }
}

/// The index of an object that is being built.
package struct JSONObjectIndex {
    /// The positions of names and values.
    var positions: [UInt32] = []
    var depth = 1
    var hasWideNumbers = false

    package init() {}

    /// Adds all members of an object at the beginning of a canonical text; returns the index behind it.
    @discardableResult
    package mutating func scan(_ text: UnsafeRawBufferPointer) -> Int {
        var at = 1
        while text[at] != UInt8(ascii: "}") {
            if text[at] == UInt8(ascii: ",") { at += 1 }
            let value = CanonicalJSON.endOfString(at, text) + 1
            positions.append(UInt32(truncatingIfNeeded: at + 1))
            positions.append(UInt32(truncatingIfNeeded: value))
            var scan = CanonicalJSON.Scan()
            at = scan.end(ofValueAt: value, text)
            depth = max(depth, 1 + scan.depth)
            if scan.hasWideNumbers { hasWideNumbers = true }
        }
        return at + 1
    }

    /// Returns the buffer of an object.
    func buffer(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount(text)) { target, count in
            count = byteCount(text)
            write(text, to: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(target)[..<count]))
        }
    }

    /// The number of bytes of the buffer without a trailer.
    package func byteCount(_ text: UnsafeRawBufferPointer) -> Int {
        JSONObjectParts.headerCount + positions.count * (text.count > 0xFFFF ? 4 : 2) + text.count
    }

    /// Writes header, index and text; `target` has `byteCount(text)` bytes or more.
    package func write(_ text: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) {
        let isLong = text.count > 0xFFFF
        let base = target.baseAddress.unsafelyUnwrapped
        let flags = (hasWideNumbers ? JSONObjectParts.wideNumbers : 0) | (isLong ? JSONObjectParts.longIndex : 0)
        base.storeBytes(of: UInt32(truncatingIfNeeded: positions.count / 2), as: UInt32.self)
        base.storeBytes(of: UInt8(min(depth, 255)), toByteOffset: 4, as: UInt8.self)
        base.storeBytes(of: flags, toByteOffset: JSONObjectParts.flagsPlace, as: UInt8.self)
        base.storeBytes(of: 0, toByteOffset: JSONObjectParts.trailerFlagsPlace, as: UInt16.self)
        var at = JSONObjectParts.headerCount
        for position in positions {
            if isLong {
                base.storeBytes(of: position, toByteOffset: at, as: UInt32.self)
                at += 4
            } else {
                base.storeBytes(
                    of: UInt16(truncatingIfNeeded: position), toByteOffset: at, as: UInt16.self)
                at += 2
            }
        }
        memcpy(base + at, text.baseAddress.unsafelyUnwrapped, text.count)
    }
}

/// Builds an object from members in the order of their names.
struct JSONObjectBuilder: ~Copyable {
    private var text = ByteBuffer()
    private var index = JSONObjectIndex()

    init() { text.append(UInt8(ascii: "{")) }

    /// Creates a builder for about as many members as `parts` has.
    init(like parts: JSONObjectParts) {
        text = ByteBuffer(capacity: parts.text.count + 32)
        index.positions.reserveCapacity(2 * parts.count + 2)
        text.append(UInt8(ascii: "{"))
    }

    private mutating func separate() { if text.count > 1 { text.append(UInt8(ascii: ",")) } }

    /// Appends a member.
    ///
    /// - Parameters:
    ///   - name: as in the text, without quotes.
    ///   - value: a canonical text.
    mutating func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        var scan = CanonicalJSON.Scan()
        _ = scan.end(ofValueAt: 0, value)
        index.depth = max(index.depth, 1 + scan.depth)
        if scan.hasWideNumbers { index.hasWideNumbers = true }
        appendName(name)
        text.append(value)
    }

    /// Appends a member whose value `write` appends.
    ///
    /// - Parameters:
    ///   - depth: at least the nesting depth of the object with this member.
    ///   - hasWideNumbers: see ``JSONObjectParts/hasWideNumbers``.
    mutating func append(
        _ name: UnsafeRawBufferPointer, depth: Int, hasWideNumbers: Bool, _ write: (inout ByteBuffer) -> Void
    ) {
        index.depth = max(index.depth, depth)
        if hasWideNumbers { index.hasWideNumbers = true }
        appendName(name)
        write(&text)
    }

    private mutating func appendName(_ name: UnsafeRawBufferPointer) {
        separate()
        text.append(UInt8(ascii: "\""))
        index.positions.append(UInt32(truncatingIfNeeded: text.count))
        text.append(name)
        text.append("\":" as StaticString)
        index.positions.append(UInt32(truncatingIfNeeded: text.count))
    }

    /// Appends consecutive members of an object.
    mutating func append(_ parts: JSONObjectParts, _ members: Range<Int>) {
        guard !members.isEmpty else { return }
        index.depth = max(index.depth, parts.depth)
        if parts.hasWideNumbers { index.hasWideNumbers = true }
        separate()
        let start = parts.nameStart(members.lowerBound) - 1
        let shift = text.count - start
        for member in members {
            index.positions.append(UInt32(truncatingIfNeeded: parts.nameStart(member) + shift))
            index.positions.append(UInt32(truncatingIfNeeded: parts.valueStart(member) + shift))
        }
        text.append(
            UnsafeRawBufferPointer(rebasing: parts.text[start..<parts.valueEnd(members.upperBound - 1)]))
    }

    consuming func finish() -> JSONObject {
        text.append(UInt8(ascii: "}"))
        return JSONObject(text.bytes, index)
    }
}
