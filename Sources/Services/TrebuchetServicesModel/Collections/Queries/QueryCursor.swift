internal import Bytes
internal import Platform
internal import TrebuchetWire

/// A position in an order: right after a document, even if that does not exist any more. Its text is opaque.
package struct QueryCursor: Hashable, Sendable {
    /// The document's values of the order's fields.
    let values: [JSONValue]
    /// Their canonical texts.
    package let texts: [[UInt8]]
    package let created: Int
    let id: DocumentID
    /// Identifies the order, so that a cursor of another order is refused.
    private let order: UInt32

    /// Space for four truncated strings, in base64 twice, and the rest.
    static let maximumTextLength = 8 << 10

    package init(behind document: Document, in order: [QueryOrder]) {
        values = order.map { JSONOrder.placing($0.path.value(in: document)) }
        texts = values.map(\.json)
        created = document.creationRevision
        id = document.id
        self.order = order.digest
    }

    init(_ text: String, _ order: [QueryOrder]) throws(CollectionError) {
        guard text.utf8.count <= Self.maximumTextLength, let bytes = CursorText.bytes(text),
            case .array(let parts)? = try? JSONValue(json: bytes), parts.count == order.count + 3,
            case .integer(let digest) = parts[0], digest == Int64(order.digest),
            case .integer(let created) = parts[1], case .string(let id)? = Self.unpacked(parts[2]),
            case let values = parts.dropFirst(3).compactMap({ Self.unpacked($0) }), values.count == order.count
        else { throw .invalidQuery("'\(text.prefix(bytes: 32))…' is not a cursor of a result in this order") }
        self.order = order.digest
        self.created = Int(created)
        self.id = DocumentID(id)
        self.values = values
        texts = values.map(\.json)
    }

    package var text: String {
        let parts = [.string(id.text)] + values
        let numbers: [JSONValue] = [.integer(Int64(order)), .integer(Int64(created))]
        return CursorText.text(JSONValue.array(numbers + parts.map { Self.packed($0) }).json)
    }

    /// Encodes a string, so that JSON escapes cannot make it longer than a cursor may be.
    private static func packed(_ value: JSONValue) -> JSONValue {
        guard case .string(let text) = value else { return value }
        return .string(CursorText.text(Array(text.utf8)))
    }

    private static func unpacked(_ value: JSONValue) -> JSONValue? {
        guard case .string(let text) = value else { return value }
        return CursorText.bytes(text).flatMap { String(validating: $0, as: UTF8.self) }.map { .string($0) }
    }

    /// Returns whether a document comes after the cursor.
    package func precedes(_ document: Document, in order: [QueryOrder]) -> Bool {
        for (order, text) in zip(order, texts) {
            let sign = order.path.withText(in: document) { other in
                text.withUnsafeBytes { JSONOrder.comparePlaces($0, other) }
            }
            if sign != 0 { return (sign < 0) != order.isDescending }
        }
        guard created == document.creationRevision else { return created < document.creationRevision }
        return id < document.id
    }
}

extension [QueryOrder] {
    fileprivate var digest: UInt32 {
        var digest = StableDigest()
        for order in self {
            digest.combine(order.field)
            digest.combine(order.isDescending ? 1 : 0 as UInt8)
        }
        return UInt32(truncatingIfNeeded: digest.value ^ digest.value >> 32)
    }
}

/// Base64url without padding (RFC 4648 §5).
enum CursorText {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func text(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var (buffer, bits) = (0, 0)
        for byte in bytes {
            buffer = buffer << 8 | Int(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[buffer >> bits & 63])
            }
            buffer &= 63
        }
        if bits > 0 { text.append(digits[buffer << (6 - bits) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns nil for any input that `text` does not produce.
    static func bytes(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (buffer, bits) = (0, 0)
        for character in text.utf8 {
            guard let digit = digits.firstIndex(of: character) else { return nil }
            buffer = buffer << 6 | digit
            bits += 6
            guard bits >= 8 else { continue }
            bits -= 8
            bytes.append(UInt8(buffer >> bits & 255))
            buffer &= 63
        }
        return self.text(bytes).isSameBytes(as: text) ? bytes : nil
    }
}
