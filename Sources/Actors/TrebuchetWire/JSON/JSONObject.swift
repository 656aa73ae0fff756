internal import Bytes
#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif
internal import Platform

// trebuchet: TypeScript = { [name: string]: unknown }
/// The members of a JSON object, with unique names. Names are compared by their bytes: composed and decomposed `é` are
/// different names.
///
/// An object is its canonical JSON text in one buffer, with an index of its members: a value is found without decoding the
/// others, and equal objects have equal texts. Reading a member decodes it; setting one moves the text behind it.
public struct JSONObject: Sendable {
    /// The header, the index and the text; see ``JSONObjectParts``. The fields of a document share its buffer.
    @usableFromInline package var buffer: [UInt8]

    private static let empty = Array("{}".utf8).withUnsafeBytes { JSONObject(canonical: $0) }

    /// An object without members, `{}`.
    public init() { self = Self.empty }

    /// Creates an object from its canonical text.
    package init(canonical text: UnsafeRawBufferPointer) {
        var index = JSONObjectIndex()
        index.scan(text)
        self.init(text, index)
    }

    package init(_ text: UnsafeRawBufferPointer, _ index: JSONObjectIndex) { buffer = index.buffer(text) }

    @inlinable package init(buffer: [UInt8]) { self.buffer = buffer }

    /// Calls `body` with the members as text, which is valid during the call.
    @inlinable
    package func withParts<Result>(_ body: (JSONObjectParts) throws -> Result) rethrows -> Result {
        try buffer.withUnsafeBytes { try body(JSONObjectParts($0)) }
    }

    /// Calls `body` with the canonical text.
    @inlinable
    package func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withParts { try body($0.text) }
    }

    /// Calls `body` with the canonical text of a member's value, nil when there is no such member.
    @inlinable
    package func withText<Result>(
        of name: String, _ body: (UnsafeRawBufferPointer?) throws -> Result
    ) rethrows -> Result {
        try JSONObjectParts.withCanonical(name) { name in
            try withParts { parts in try body(parts.place(of: name).found.map { parts.value($0) }) }
        }
    }

    /// The number of members.
    public var count: Int { withParts { $0.count } }
    /// True when there are no members.
    public var isEmpty: Bool { count == 0 }
    /// The names of the members, sorted by their bytes.
    public var names: [String] {
        withParts { parts in (0..<parts.count).map { parts.decodedName($0) } }
    }
    /// The values of the members, in the order of their names.
    public var values: some Collection<JSONValue> {
        withParts { parts in (0..<parts.count).map { JSONValue(canonical: parts.value($0)) } }
    }

    /// True when a number may be equal to one with another text.
    @inlinable package var hasWideNumbers: Bool { withParts { $0.hasWideNumbers } }

    /// The number of bytes of the JSON text.
    @inlinable package var byteCount: Int { withParts { $0.text.count } }

    /// The member with this name, or nil when there is none. Setting nil removes the member; a member that is null is present.
    ///
    /// Setting it moves the text behind it, and copies the object if another value shares its memory.
    public subscript(name: String) -> JSONValue? {
        get { withText(of: name) { $0.map { JSONValue(canonical: $0) } } }
        set {
            var text = ByteBuffer()
            newValue?.write(json: &text)
            let value = newValue == nil ? nil : text.bytes
            JSONObjectParts.withCanonical(name) { name in
                guard let edit = withParts({ JSONObjectEdit(of: $0, name, value) }) else { return }
                if !edit.apply(to: &buffer) { self = setting(name, value) }
            }
        }
    }

    /// Returns the object with a member replaced, added or removed.
    private func setting(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?) -> JSONObject {
        withParts { parts in
            let place = parts.place(of: name)
            var changed = JSONObjectBuilder(like: parts)
            changed.append(parts, 0..<place.index)
            if let value { changed.append(name, value) }
            changed.append(parts, place.index + (place.found == nil ? 0 : 1)..<parts.count)
            return changed.finish()
        }
    }

    /// Changes the value of each member, in the order of their names.
    ///
    /// - Throws: the error of `change`; members before it are changed then.
    public mutating func mutateEach(_ change: (inout JSONValue) throws -> Void) rethrows {
        var members = sorted
        defer { self = JSONObject(members.lazy.map { (key: $0.name, value: $0.value) }) }
        for index in members.indices { try change(&members[index].value) }
    }

    /// The members, sorted by the bytes of their names.
    public var sorted: [(name: String, value: JSONValue)] { Array(self) }

    /// Returns the members for which `isIncluded` is true.
    public func keeping(where isIncluded: (_ name: String, _ value: JSONValue) throws -> Bool) rethrows -> JSONObject {
        try withParts { parts in
            var remaining = JSONObjectBuilder(like: parts)
            for index in 0..<parts.count
            where try isIncluded(parts.decodedName(index), JSONValue(canonical: parts.value(index))) {
                remaining.append(parts, index..<index + 1)
            }
            return remaining.finish()
        }
    }
}

extension JSONObject: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        one.withText { one in other.withText { one.hasSameBytes($0) } }
    }

    public func hash(into hasher: inout Hasher) { withText { hasher.combine(bytes: $0) } }
}

extension JSONObject: Sequence {
    /// Iterates over the members in the order of their names.
    public struct Iterator: IteratorProtocol {
        fileprivate let object: JSONObject
        fileprivate var index = 0

        public mutating func next() -> (name: String, value: JSONValue)? {
            defer { index += 1 }
            return object.withParts { parts in
                index < parts.count
                    ? (parts.decodedName(index), JSONValue(canonical: parts.value(index))) : nil
            }
        }
    }

    /// Returns an iterator over the members in the order of their names.
    public func makeIterator() -> Iterator { Iterator(object: self) }

    /// The number of members.
    public var underestimatedCount: Int { count }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object. The last of several members with the same name is used.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init(members: elements.map { (ByteText($0.0), $0.1) })
    }

    /// Creates an object. The last of several members with the same name is used.
    public init(_ members: some Sequence<(key: String, value: JSONValue)>) {
        self.init(members: members.map { (ByteText($0.key), $0.value) })
    }

    private init(members: [(name: ByteText, value: JSONValue)]) {
        // Stable, so that the last of equal names follows the others.
        let sorted = members.enumerated().sorted {
            $0.element.name == $1.element.name
                ? $0.offset < $1.offset : $0.element.name < $1.element.name
        }
        var text = ByteBuffer()
        text.append(UInt8(ascii: "{"))
        var isFirst = true
        for (index, member) in sorted.enumerated() {
            if index + 1 < sorted.count, sorted[index + 1].element.name == member.element.name {
                continue
            }
            if !isFirst { text.append(UInt8(ascii: ",")) }
            isFirst = false
            JSONString.append(member.element.name.text, to: &text)
            text.append(UInt8(ascii: ":"))
            member.element.value.write(json: &text)
        }
        text.append(UInt8(ascii: "}"))
        self.init(canonical: text.bytes)
    }
}

extension JSONObject: Codable {
    public init(from decoder: any Decoder) throws {
        guard case .object(let object) = try JSONValue(from: decoder) else {
            throw DecodingError.typeMismatch(
                JSONObject.self, .init(codingPath: decoder.codingPath, debugDescription: "expected an object"))
        }
        self = object
    }

    public func encode(to encoder: any Encoder) throws { try JSONValue.object(self).encode(to: encoder) }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    package func hasSameBytes(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let one = baseAddress, let other = other.baseAddress else { return true }
        return one == other || memcmp(one, other, count) == 0
    }

    package func isText(_ text: StaticString) -> Bool {
        hasSameBytes(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}
