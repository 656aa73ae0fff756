internal import TrebuchetWire

/// A JSON value at its position in the text of a rules file, so that problems can be reported with line numbers.
struct RuleValue {
    struct Member {
        let name: String
        /// The position of the name.
        let offset: Int
        let value: RuleValue
    }

    /// A JSON syntax error with its position.
    struct SyntaxError: Error {
        let offset: Int
        let message: String
    }

    /// The text of the value. Its indices are those of the file.
    private let text: ArraySlice<UInt8>

    /// The position of the first byte.
    var offset: Int { text.startIndex }

    /// Parses a whole text.
    init(text: [UInt8]) throws(SyntaxError) {
        let result: Result<RuleValue, SyntaxError> = text.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            do throws(EnvelopeError) {
                let range = try cursor.value()
                try cursor.expectEnd()
                return .success(RuleValue(text[...], range))
            } catch {
                let message = error.message
                let suffix = " at byte \(cursor.at)"
                return .failure(
                    SyntaxError(
                        offset: cursor.at,
                        message: message.hasSuffix(suffix) ? String(message.dropLast(suffix.count)) : message))
            }
        }
        self = try result.get()
    }

    /// - Parameter range: the range of the value, from the start of the text around it.
    private init(_ text: ArraySlice<UInt8>, _ range: ByteRange) {
        let start = text.startIndex + Int(range.offset)
        self.text = text[start..<start + Int(range.count)]
    }

    /// The value. Throws for a duplicate member name, and for a number outside the range of a double.
    var json: JSONValue { get throws { try text.withUnsafeBytes { try JSONValue(json: $0) } } }

    /// The members of an object in their order, where names may occur twice; nil for any other value.
    var members: [Member]? {
        parts(UInt8(ascii: "{")) { cursor, isFirst in
            guard let name = try cursor.name(&isFirst) else { return nil }
            return Member(
                name: cursor.text(name), offset: offset + Int(name.offset) - 1,
                value: RuleValue(text, try cursor.value()))
        }
    }

    /// The elements of an array; nil for any other value.
    var elements: [RuleValue]? {
        parts(UInt8(ascii: "[")) { cursor, isFirst in
            try cursor.hasElement(&isFirst) ? RuleValue(text, try cursor.value()) : nil
        }
    }

    private func parts<Part>(
        _ bracket: UInt8, _ next: (inout JSONCursor, _ isFirst: inout Bool) throws -> Part?
    ) -> [Part]? {
        text.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            guard cursor.consume(bracket) else { return nil }
            var parts: [Part] = []
            var isFirst = true
            while let part = try? next(&cursor, &isFirst) { parts.append(part) }
            return parts
        }
    }
}
