package import Bytes
package import TrebuchetWire

// trebuchet: TypeScript = unknown
/// A JSON value as its canonical text, for values that are stored, compared and forwarded. Any value, also an array, takes about
/// as many bytes as its text, and is written by copying it. A `JSONValue` has an allocation for each element of an array.
package struct StoredJSON: Sendable, Hashable {
    private enum Content: Hashable {
        case object(JSONObject)
        /// The canonical text of any other value.
        case text([UInt8])
    }

    private let content: Content

    init(_ value: JSONValue) {
        content = if case .object(let members) = value { .object(members) } else { .text(value.json) }
    }

    package init(_ object: JSONObject) { content = .object(object) }

    /// The members of an object; nil for any other value.
    package var object: JSONObject? { if case .object(let members) = content { members } else { nil } }

    /// The value, decoded.
    package var value: JSONValue {
        switch content {
        case .object(let members): .object(members)
        case .text(let text): text.withUnsafeBytes { JSONValue(canonical: $0) }
        }
    }

    /// Calls `body` with the canonical text.
    package func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        switch content {
        case .object(let members): try members.withText(body)
        case .text(let text): try text.withUnsafeBytes(body)
        }
    }

    /// The number of bytes of the text.
    package var byteCount: Int {
        switch content {
        case .object(let members): members.byteCount
        case .text(let text): text.count
        }
    }

    /// Returns this value with a merge patch applied (RFC 7396).
    package func merging(_ patch: StoredJSON) -> StoredJSON {
        guard let changes = patch.object else { return patch }
        return StoredJSON((object ?? JSONObject()).merging(changes))
    }

    /// Returns the value with the value at a path within objects set or removed; nil when the path does not exist.
    ///
    /// - Parameter value: nil for removal.
    func setting(_ value: StoredJSON?, at path: ArraySlice<String>) -> StoredJSON? {
        guard !path.isEmpty else { return value }
        guard let object else { return nil }
        let changed =
            if let value { value.withText { object.setting($0, at: path) } } else { object.setting(nil, at: path) }
        return changed.map { StoredJSON($0) }
    }
}

extension StoredJSON: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        guard json.peek() != UInt8(ascii: "{") else {
            content = .object(try JSONObject(json: &json, depth: depth))
            return
        }
        var text = ByteBuffer()
        try CanonicalJSON.append(&json, depth: depth, to: &text)
        content = .text(Array(text.bytes))
    }

    package func write(json: inout ByteBuffer) { withText { json.append($0) } }
}

extension StoredJSON: Codable {
    package init(from decoder: any Decoder) throws {
        self = try Self.readDirectly(from: decoder) ?? Self(JSONValue(from: decoder))
    }

    package func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        try value.encode(to: encoder)
    }
}
