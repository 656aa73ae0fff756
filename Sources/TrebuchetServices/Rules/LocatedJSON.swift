internal import TrebuchetWire

/// JSON that knows where in its text it stands, so that what is wrong with it can be told by line.
struct LocatedJSON {
    struct Member {
        let name: String
        /// Of the name.
        let offset: Int
        let value: LocatedJSON
    }

    enum Content {
        /// In their order; a name may be there twice.
        case object([Member])
        case array([LocatedJSON])
        /// A text, a number, true, false or null.
        case scalar(JSONValue)
    }

    /// What is no JSON, and where.
    struct SyntaxError: Error {
        let offset: Int
        let message: String
    }

    /// Where it begins, in bytes.
    let offset: Int
    let content: Content

    /// All of a text.
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
        let place = " at byte \(offset)"
        if message.hasSuffix(place) { message.removeLast(place.count) }
        return SyntaxError(offset: offset, message: message)
    }

    private init(_ cursor: inout JSONCursor, depth: Int) throws {
        guard depth < JSONCursor.deepest else { throw cursor.tooDeep() }
        let first = cursor.peek()
        offset = cursor.at
        var isFirst = true
        switch first {
        case UInt8(ascii: "{"):
            try cursor.expect(first)
            var members: [Member] = []
            while true {
                // Behind the comma, and the white space.
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

    /// What it is, without places. Of a name that is there twice the last counts.
    var value: JSONValue {
        switch content {
        case .scalar(let value): value
        case .array(let elements): .array(elements.map(\.value))
        case .object(let members): .object(JSONObject(members.map { (key: $0.name, value: $0.value.value) }))
        }
    }
}
