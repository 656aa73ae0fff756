internal import TrebuchetWire

/// JSON with the positions of its values in the text, so that errors can be reported with line numbers.
struct LocatedJSON {
    struct Member {
        let name: String
        /// The position of the name.
        let offset: Int
        let value: LocatedJSON
    }

    enum Content {
        /// The members in their order; names may occur twice.
        case object([Member])
        case array([LocatedJSON])
        /// A string, a number, true, false or null.
        case scalar(JSONValue)
    }

    /// A JSON syntax error with its position.
    struct SyntaxError: Error {
        let offset: Int
        let message: String
    }

    /// The position of the first byte.
    let offset: Int
    let content: Content

    /// Parses a whole text.
    init(text: [UInt8]) throws(SyntaxError) {
        let result: Result<LocatedJSON, SyntaxError> = text.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            do {
                let value = try LocatedJSON(&cursor, depth: 0)
                try cursor.expectEnd()
                return .success(value)
            } catch {
                return .failure(Self.syntaxError(error, at: cursor.at))
            }
        }
        self = try result.get()
    }

    private static func syntaxError(_ error: any Error, at offset: Int) -> SyntaxError {
        var message = (error as? EnvelopeError)?.message ?? "\(error)"
        let suffix = " at byte \(offset)"
        if message.hasSuffix(suffix) { message.removeLast(suffix.count) }
        return SyntaxError(offset: offset, message: message)
    }

    private init(_ cursor: inout JSONCursor, depth: Int) throws {
        guard depth < JSONCursor.maximumDepth else { throw cursor.tooDeep() }
        let first = cursor.peek()
        offset = cursor.at
        var isFirst = true
        switch first {
        case UInt8(ascii: "{"):
            try cursor.expect(first)
            var members: [Member] = []
            while true {
                // The offset now points past the comma and the white space.
                let name = try cursor.name(&isFirst)
                guard let name else { break }
                let value = try LocatedJSON(&cursor, depth: depth + 1)
                members.append(Member(name: cursor.text(name), offset: Int(name.offset) - 1, value: value))
            }
            content = .object(members)
        case UInt8(ascii: "["):
            try cursor.expect(first)
            var elements: [LocatedJSON] = []
            while try cursor.hasElement(&isFirst) { elements.append(try LocatedJSON(&cursor, depth: depth + 1)) }
            content = .array(elements)
        default:
            content = .scalar(try JSONValue(json: &cursor, depth: depth))
        }
    }

    /// The value without positions. The last of several members with the same name is used.
    var value: JSONValue {
        switch content {
        case .scalar(let value): value
        case .array(let elements): .array(elements.map(\.value))
        case .object(let members): .object(JSONObject(members.map { (key: $0.name, value: $0.value.value) }))
        }
    }
}
