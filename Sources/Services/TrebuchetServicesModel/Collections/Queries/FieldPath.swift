internal import Bytes
internal import Platform

/// The location of a value in a document, for a condition or an order.
///
/// `title` is a field, `address.city` a member of an object in a field. A backslash escapes a dot, a backslash or a `$`: `a\.b`
/// is the field `a.b`. An unescaped `$` at the beginning selects metadata of the document: `$creator`, `$created`, `$revision`,
/// `$createdAt`, `$updatedAt`.
@usableFromInline
package struct FieldPath: Sendable {
    @usableFromInline
    enum Location: Sendable, Equatable {
        case field([String])
        /// The id of the principal that created the document; null without one.
        case creator
        /// The numbers of the write that created it, and of the last write.
        case created, revision
        /// The times of these writes, in milliseconds since 1970.
        case createdAt, updatedAt
    }

    /// The maximum number of nested names.
    static let maximumDepth = 8

    let text: String
    /// Nil for an invalid path.
    @usableFromInline let location: Location?
    /// The path of the object that has the value; nil for a field of the document.
    let parent: ByteText?

    /// Creates a path in its normal form: with a backslash only where it is needed.
    init(_ text: String) {
        location = Self.parseLocation(text)
        if case .field(let names)? = location, names.count > 1 {
            parent = ByteText(Self.text(names.dropLast()))
        } else {
            parent = nil
        }
        guard case .field(let names)? = location, text.utf8.contains(UInt8(ascii: "\\")) else {
            self.text = text
            return
        }
        self.text = Self.text(names)
    }

    private static func text(_ names: some Sequence<String>) -> String {
        var text: [UInt8] = []
        for (number, name) in names.enumerated() {
            if number > 0 { text.append(UInt8(ascii: ".")) }
            for byte in name.utf8 {
                let isFirst = text.isEmpty
                if byte == UInt8(ascii: ".") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "$") && isFirst {
                    text.append(UInt8(ascii: "\\"))
                }
                text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func parseLocation(_ text: String) -> Location? {
        if text.utf8.first == UInt8(ascii: "$") { return known(text) }
        var names: [String] = []
        var name: [UInt8] = []
        var isEscaped = false
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "."), UInt8(ascii: "$"), UInt8(ascii: "\\"):
                if isEscaped || byte == UInt8(ascii: "$") {
                    name.append(byte)
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else {
                    names.append(String(decoding: name, as: UTF8.self))
                    name = []
                }
            default:
                guard !isEscaped else { return nil }
                name.append(byte)
            }
        }
        names.append(String(decoding: name, as: UTF8.self))
        return isEscaped || names.count > maximumDepth ? nil : .field(names)
    }

    private static func known(_ text: String) -> Location? {
        switch text {
        case "$creator": .creator
        case "$created": .created
        case "$revision": .revision
        case "$createdAt": .createdAt
        case "$updatedAt": .updatedAt
        default: nil
        }
    }

    func check() throws(CollectionError) {
        guard location == nil else { return }
        throw .invalidQuery(
            "'\(text.prefix(bytes: 64))' is not a field: names are separated by dots, at most \(Self.maximumDepth), and a dot, a backslash or a $ at "
                + "the beginning of a name must be escaped with a backslash")
    }

    /// Calls `body` with the canonical text of the value; nil when it is missing.
    @inlinable
    package func withText<Result>(
        in document: Document, _ body: (UnsafeRawBufferPointer?) throws -> Result
    ) rethrows -> Result {
        guard case .field(let names) = location else {
            guard let json = metadata(of: document) else { return try body(nil) }
            return try json.withUnsafeBytes { try body($0) }
        }
        return try document.fields.withText(of: names[0]) { value in
            try body(names.count == 1 ? value : Self.member(names.dropFirst(), of: value))
        }
    }

    /// Calls `body` with the canonical text of a value within objects; nil when it is missing.
    static func withText<Result>(
        of names: ArraySlice<String>, in document: Document, _ body: (UnsafeRawBufferPointer?) throws -> Result
    ) rethrows -> Result {
        guard let first = names.first else { return try body(nil) }
        return try document.fields.withText(of: first) { try body(member(names.dropFirst(), of: $0)) }
    }

    /// Returns the text of the value of metadata; nil when it is missing.
    @usableFromInline
    func metadata(of document: Document) -> [UInt8]? { value(in: document)?.json }

    /// Returns the text of a value within objects; nil when it is missing.
    @usableFromInline
    static func member(_ names: ArraySlice<String>, of object: UnsafeRawBufferPointer?) -> UnsafeRawBufferPointer? {
        var value = object
        for name in names {
            guard let object = value else { break }
            value = JSONObjectParts.withCanonical(name) { CanonicalJSON.member($0, of: object) }
        }
        return value
    }

    /// Returns the value; nil when it is missing.
    func value(in document: Document) -> JSONValue? {
        switch location {
        case .field: return withText(in: document) { $0.map { JSONValue(canonical: $0) } }
        case .creator: return document.creator.map { .string($0) }
        case .created: return .integer(Int64(document.creationRevision))
        case .revision: return .integer(Int64(document.revision))
        case .createdAt: return .integer(Int64(document.createdMilliseconds))
        case .updatedAt: return .integer(Int64(document.updatedMilliseconds))
        case nil: return nil
        }
    }
}

/// Compared by its bytes, because strings that are equal in Swift may be different names.
extension FieldPath: Hashable {
    @usableFromInline package static func == (one: Self, other: Self) -> Bool { one.text.isSameBytes(as: other.text) }
    @usableFromInline package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}
