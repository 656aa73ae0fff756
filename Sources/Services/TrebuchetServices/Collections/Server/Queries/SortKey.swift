internal import TrebuchetWire

/// The beginning of a document's position in an order, as a number. Documents with different keys are in the order of the keys;
/// those with the same key must be compared.
struct SortKey: Comparable {
    // Not one number, which would align a row with its key to 16 bytes.
    private let high: UInt64
    private let low: UInt64

    init(_ bits: UInt128) { (high, low) = (UInt64(truncatingIfNeeded: bits >> 64), UInt64(truncatingIfNeeded: bits)) }

    static func < (one: Self, other: Self) -> Bool {
        one.high == other.high ? one.low < other.low : one.high < other.high
    }

    /// The bits of a value behind those of its kind.
    private static let valueBits = 125
    /// The bytes of a string that the key has, the last one in part.
    private static let textBytes = 16

    init(_ document: Document, in order: [QueryOrder]) {
        guard let first = order.first else {
            self.init(UInt128(max(0, document.creationRevision)))
            return
        }
        let bits = first.path.withText(in: document) { Self.bits($0) }
        self.init(first.isDescending ? ~bits : bits)
    }

    init(_ cursor: QueryCursor, in order: [QueryOrder]) {
        guard let first = order.first, let value = cursor.texts.first else {
            self.init(UInt128(max(0, cursor.created)))
            return
        }
        let bits = value.withUnsafeBytes { Self.bits($0) }
        self.init(first.isDescending ? ~bits : bits)
    }

    /// - Parameter text: a canonical text; nil for a missing value.
    private static func bits(_ text: UnsafeRawBufferPointer?) -> UInt128 {
        let kind = UInt128(JSONOrder.kind(text).rawValue) << valueBits
        return kind | (text.map { value($0) } ?? 0)
    }

    private static func value(_ text: UnsafeRawBufferPointer) -> UInt128 {
        switch JSONOrder.kind(text) {
        case .null, .array, .object: return 0
        case .bool: return text[0] == UInt8(ascii: "t") ? 1 : 0
        case .number:
            let number: Double
            if let whole = JSONNumber.int(text) {
                number = Double(whole)
            } else {
                switch try? JSONValue.scalar(text) {
                case .integer(let integer): number = Double(integer)
                case .number(let double): number = double
                default: number = 0
                }
            }
            // In the order of the numbers: positive ones above negative ones, and these reversed. 0.0 has one key.
            let bits = (number + 0).bitPattern
            return UInt128(bits >> 63 == 0 ? bits | 1 << 63 : ~bits) << (valueBits - 64)
        case .text:
            let inside = CanonicalJSON.inside(text)
            let start = UnsafeRawBufferPointer(rebasing: inside.prefix(textBytes))
            if CanonicalJSON.isEscaped(start) {
                // With the rest of a partial character.
                let start = CanonicalJSON.prefix(inside, decodedBytes: textBytes + 3)
                return beginning(CanonicalJSON.string(start).utf8)
            }
            return beginning(start)
        }
    }

    private static func beginning(_ bytes: some Sequence<UInt8>) -> UInt128 {
        var (high, low, count) = (UInt64(0), UInt64(0), 0)
        for byte in bytes.prefix(textBytes) {
            let shift = UInt64(56 - 8 * (count & 7))
            if count < 8 { high |= UInt64(byte) << shift } else { low |= UInt64(byte) << shift }
            count += 1
        }
        return (UInt128(high) << 64 | UInt128(low)) >> (128 - valueBits)
    }
}
