internal import Bytes
internal import TrebuchetWire

/// The text form of JSON.
extension StateJSON {
    /// Parses text. The last of several members with the same name counts.
    ///
    /// - Throws: an error with the position if the text is not valid JSON or its values are nested deeper than 64.
    public init(text: String) throws { self = try Self(utf8: ArraySlice(text.utf8)) }

    /// The text, without white space, with the members of objects in the order of the bytes of their names.
    public var text: String { String(decoding: utf8, as: UTF8.self) }

    /// Creates the JSON of a value, in the form in which states are stored. Throws `EncodingError`.
    public init(encoding value: some Encodable) throws { try self.init(encoding: value, with: ValueCoder()) }

    /// Decodes a value, such as an older form of a state that Swift code converts to the new one. References to actors need
    /// their system, so they do not decode here.
    ///
    /// - Throws: an error that names the member, if the JSON does not match the type.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try utf8.withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }

    init(encoding value: some Encodable, with coder: ValueCoder) throws {
        var buffer = ByteBuffer()
        try coder.encode(value, into: &buffer)
        self = try Self(buffer.bytes)
    }

    init(utf8: ArraySlice<UInt8>) throws { self = try utf8.withUnsafeBytes { try Self($0) } }

    var utf8: [UInt8] {
        var buffer = ByteBuffer()
        write(into: &buffer)
        return Array(buffer.bytes)
    }

    // MARK: Reading

    private init(_ bytes: UnsafeRawBufferPointer) throws {
        var cursor = JSONCursor(bytes)
        do throws(EnvelopeError) {
            self = try Self(&cursor, depth: 0)
            try cursor.expectEnd()
        } catch {
            throw ValueError("not valid JSON: \(error.message)")
        }
    }

    private init(_ cursor: inout JSONCursor, depth: Int) throws(EnvelopeError) {
        switch cursor.peek() {
        case UInt8(ascii: "{"): self = .object(try Self.members(&cursor, depth: depth + 1))
        case UInt8(ascii: "["): self = .array(try Self.elements(&cursor, depth: depth + 1))
        case UInt8(ascii: "\""): self = .string(cursor.text(try cursor.string()))
        default:
            let bytes = cursor.bytes(try cursor.value())
            switch bytes.first {
            case UInt8(ascii: "n"): self = .null
            case UInt8(ascii: "t"): self = .bool(true)
            case UInt8(ascii: "f"): self = .bool(false)
            default: self = .number(Number(checked: String(decoding: bytes, as: UTF8.self)))
            }
        }
    }

    private static func members(_ cursor: inout JSONCursor, depth: Int) throws(EnvelopeError) -> Object {
        guard depth <= JSONCursor.maximumDepth else { throw cursor.tooDeep() }
        try cursor.expect(UInt8(ascii: "{"))
        var members = Object()
        var isFirst = true
        while let range = try cursor.name(&isFirst) {
            members[cursor.text(range)] = try StateJSON(&cursor, depth: depth)
        }
        return members
    }

    private static func elements(_ cursor: inout JSONCursor, depth: Int) throws(EnvelopeError) -> [StateJSON] {
        guard depth <= JSONCursor.maximumDepth else { throw cursor.tooDeep() }
        try cursor.expect(UInt8(ascii: "["))
        var elements: [StateJSON] = []
        var isFirst = true
        while try cursor.hasElement(&isFirst) { elements.append(try StateJSON(&cursor, depth: depth)) }
        return elements
    }

    // MARK: Writing

    private func write(into buffer: inout ByteBuffer) {
        switch self {
        case .null: buffer.append("null" as StaticString)
        case .bool(true): buffer.append("true" as StaticString)
        case .bool(false): buffer.append("false" as StaticString)
        case .number(let number): buffer.append(utf8: number.text)
        case .string(let text): JSONString.append(text, to: &buffer)
        case .array(let elements):
            buffer.append(UInt8(ascii: "["))
            for index in elements.indices {
                if index > 0 { buffer.append(UInt8(ascii: ",")) }
                elements[index].write(into: &buffer)
            }
            buffer.append(UInt8(ascii: "]"))
        case .object(let members):
            buffer.append(UInt8(ascii: "{"))
            var isFirst = true
            for name in members.names {
                if !isFirst { buffer.append(UInt8(ascii: ",")) }
                isFirst = false
                JSONString.append(name, to: &buffer)
                buffer.append(UInt8(ascii: ":"))
                members[name]?.write(into: &buffer)
            }
            buffer.append(UInt8(ascii: "}"))
        }
    }
}
