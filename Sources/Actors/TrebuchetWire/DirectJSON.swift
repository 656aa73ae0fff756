package import Bytes

/// A type that reads and writes its JSON in one pass. As a `Codable` inside a value of a `ValueCoder`, it uses
/// `writeDirectly(to:)` and `readDirectly(from:)` for this.
package protocol DirectJSON {
    /// Reads the next value. Throws `EnvelopeError` or `ValueError`.
    ///
    /// - Parameter depth: the number of arrays and objects around it.
    init(json: inout JSONCursor, depth: Int) throws
    func write(json: inout ByteBuffer) throws
}

extension DirectJSON {
    /// Reads one value, which is the complete text.
    package init(json bytes: UnsafeRawBufferPointer) throws {
        var cursor = JSONCursor(bytes)
        do {
            try self.init(json: &cursor, depth: 0)
            try cursor.expectEnd()
        } catch let error as EnvelopeError {
            throw ValueError("\(Self.self) does not decode: \(error.message)")
        }
    }

    package init(json text: [UInt8]) throws { self = try text.withUnsafeBytes { try Self(json: $0) } }

    package func json() throws -> [UInt8] {
        var buffer = ByteBuffer()
        try write(json: &buffer)
        return Array(buffer.bytes)
    }
}

extension Optional: DirectJSON where Wrapped: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        if json.peek() == UInt8(ascii: "n") {
            _ = try json.value()
            self = nil
        } else {
            self = try Wrapped(json: &json, depth: depth)
        }
    }

    package func write(json: inout ByteBuffer) throws {
        if let self { try self.write(json: &json) } else { json.append("null" as StaticString) }
    }
}

extension Array: DirectJSON where Element: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
        try json.expect(UInt8(ascii: "["))
        self = []
        var isFirst = true
        while try json.hasElement(&isFirst) { append(try Element(json: &json, depth: depth + 1)) }
    }

    package func write(json: inout ByteBuffer) throws {
        json.append(UInt8(ascii: "["))
        for index in indices {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            try self[index].write(json: &json)
        }
        json.append(UInt8(ascii: "]"))
    }
}
