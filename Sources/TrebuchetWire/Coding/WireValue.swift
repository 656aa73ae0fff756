package import Bytes

/// A type that has its JSON read and written by code made for it: what `@Wire` makes of a type, and those that such types are made of.
///
/// The JSON is that of its `Codable`, which stands behind it: text that the code does not know, as members in another order, is read by
/// `init(from:)`, and a value that has no form is refused by `encode(to:)`, with the errors of these.
@_documentation(visibility: internal)
public protocol _WireValue: Codable {
    /// Reads the value that is next. Any error means that this is not for here.
    init(_wire reader: inout _WireReader) throws
    /// Writes the value. Any error means that this is not for here.
    func _write(wire writer: inout _WireWriter) throws
}

/// What code that is made for a type does not read or write.
struct WireMiss: Error {}

/// For `init(from:)` and `encode(to:)` of such types.
extension _WireValue {
    /// Reads the value, when the decoder is that of our messages and the text is as we write it; nil otherwise.
    public static func _readDirectly(from decoder: any Decoder) -> Self? {
        guard let decoder = decoder as? ValueDecoder, decoder.mark != JSONReader.noMark else { return nil }
        return decoder.reader.wireValue(Self.self, decoder.mark)
    }

    /// Writes the value, when the encoder is that of our messages and the value has a form; false otherwise.
    public func _writeDirectly(to encoder: any Encoder) throws -> Bool {
        guard let encoder = encoder as? ValueEncoder else { return false }
        return encoder.write(wire: self)
    }
}

extension KeyedDecodingContainer {
    /// A member, as the compiler's own `init(from:)` decodes it.
    public func _wireMember<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value {
        try decode(type, forKey: key)
    }

    /// One that may be absent.
    public func _wireMember<Value: Decodable>(_ type: Value?.Type, _ key: Key) throws -> Value? {
        try decodeIfPresent(Value.self, forKey: key)
    }
}

extension KeyedEncodingContainer {
    /// A member, as the compiler's own `encode(to:)` encodes it.
    public mutating func _wireMember<Value: Encodable>(_ value: Value, _ key: Key) throws {
        try encode(value, forKey: key)
    }

    /// One that is absent when it is nil.
    public mutating func _wireMember<Value: Encodable>(_ value: Value?, _ key: Key) throws {
        try encodeIfPresent(value, forKey: key)
    }
}

extension ValueCoder {
    /// Reads a value by the code that was made for its type, and as `Codable` what that does not know. Throws `ValueError`.
    package func decode<Value: _WireValue>(wire type: Value.Type, from bytes: UnsafeRawBufferPointer) throws -> Value {
        var reader = _WireReader(JSONCursor(bytes), coder: self)
        if let value = reader.all(type) { return value }
        return try decode(type, from: bytes)
    }

    /// Writes a value by the code that was made for its type. Throws `EncodingError`.
    package func encode<Value: _WireValue>(wire value: Value, into buffer: inout ByteBuffer) throws {
        let start = buffer.count
        let isWritten = withUnsafeMutablePointer(to: &buffer) { buffer in
            var writer = _WireWriter(buffer, dates, coder: self)
            return writer.writes(value)
        }
        if isWritten { return }
        buffer.truncate(to: start)
        try encode(value, into: &buffer)
    }
}

extension RawRepresentable where Self: _WireValue, RawValue: _WireValue {
    /// As the standard library decodes what has a raw value.
    public init(_wireRaw decoder: any Decoder) throws {
        let raw = try decoder.singleValueContainer().decode(RawValue.self)
        guard let value = Self(rawValue: raw) else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "Cannot initialize \(Self.self) from invalid \(RawValue.self) value \(raw)"))
        }
        self = value
    }

    /// As the standard library encodes what has a raw value.
    public func _encodeWireRaw(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
