/// Hashes of values as canonical text, as keys of indexes. Pure.
///
/// Values that `JSONOrder.areEqual` treats as equal have the same hash; different values may have the same one too, so a found
/// document or list must be compared. The time for a value is bounded.
package enum ValueHash {
    /// The maximum number of strings, numbers and brackets of an array or object that are hashed.
    private static let maximumTokens = 256
    /// The maximum number of bytes of a string that are hashed.
    private static let maximumTextLength = 512

    package static func of(_ value: JSONValue) -> Int { value.json.withUnsafeBytes { of($0) } }

    /// - Parameter text: a canonical text; nil for a missing value, which is equal to null.
    package static func of(_ text: UnsafeRawBufferPointer?) -> Int {
        var hasher = Hasher()
        guard let text, JSONOrder.kind(text) != .null else { return hasher.finalize() }
        var (at, tokens) = (0, 0)
        while at < text.count, tokens < maximumTokens {
            var end = at + 1
            switch text[at] {
            case UInt8(ascii: "\""):
                end = CanonicalJSON.endOfString(at, text)
                let string = UnsafeRawBufferPointer(rebasing: text[at..<end])
                hasher.combine(string.count)
                hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: string.prefix(maximumTextLength)))
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                while end < text.count, JSONOrder.isInNumber(text[end]) { end += 1 }
                combine(number: UnsafeRawBufferPointer(rebasing: text[at..<end]), in: &hasher)
            default: hasher.combine(text[at])
            }
            (at, tokens) = (end, tokens + 1)
        }
        return hasher.finalize()
    }

    private static func combine(number text: UnsafeRawBufferPointer, in hasher: inout Hasher) {
        // 3.0 and 3 are equal.
        if text.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "e") }),
            case .integer(let whole) = JSONOrder.identity(try? JSONValue.scalar(text))
        {
            String(whole).utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        } else {
            hasher.combine(bytes: text)
        }
    }
}
