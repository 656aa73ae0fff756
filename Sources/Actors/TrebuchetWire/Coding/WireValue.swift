package import Bytes

/// A type with generated code to read and write its JSON: types with `@Wire`, and the types of their members.
///
/// The JSON equals that of the `Codable` conformance, which is the fallback. `init(from:)` reads text that the generated code
/// does not support, such as members in another order. `encode(to:)` rejects a value without a JSON representation, with its
/// error.
@_documentation(visibility: internal)
public protocol _WireValue: Codable {
    /// Reads the next value. Any error means that the text is unsupported.
    init(_wire reader: inout _WireReader) throws
    /// Writes the value. Any error means that the value is unsupported.
    func _write(wire writer: inout _WireWriter) throws
}

/// An error: generated code does not support the text or the value.
struct WireCodeFallback: Error {}

/// Support for `init(from:)` and `encode(to:)` of such types.
extension _WireValue {
    /// Reads the value if the decoder belongs to Trebuchet and the text is supported; otherwise returns nil.
    public static func _readDirectly(from decoder: any Decoder) -> Self? {
        guard let decoder = decoder as? ValueDecoder, decoder.mark != JSONReader.noMark else { return nil }
        return decoder.reader.wireValue(Self.self, decoder.mark)
    }

    /// Writes the value if the encoder belongs to Trebuchet and the value is supported; otherwise returns false.
    public func _writeDirectly(to encoder: any Encoder) throws -> Bool {
        guard let encoder = encoder as? ValueEncoder else { return false }
        return encoder.write(wire: self)
    }
}

extension KeyedDecodingContainer {
    /// Decodes a member as a synthesized `init(from:)` does.
    public func _wireMember<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value {
        try decode(type, forKey: key)
    }

    /// Decodes a member that may be absent.
    public func _wireMember<Value: Decodable>(_ type: Value?.Type, _ key: Key) throws -> Value? {
        try decodeIfPresent(Value.self, forKey: key)
    }
}

extension KeyedEncodingContainer {
    /// Encodes a member as a synthesized `encode(to:)` does.
    public mutating func _wireMember<Value: Encodable>(_ value: Value, _ key: Key) throws {
        try encode(value, forKey: key)
    }

    /// Encodes a member that is omitted if it is nil.
    public mutating func _wireMember<Value: Encodable>(_ value: Value?, _ key: Key) throws {
        try encodeIfPresent(value, forKey: key)
    }
}

extension ValueCoder {
    /// Decodes a value by its generated code, with `Codable` as the fallback. Throws `ValueError`.
    package func decode<Value: _WireValue>(wire type: Value.Type, from bytes: UnsafeRawBufferPointer) throws -> Value {
        var reader = _WireReader(JSONCursor(bytes), coder: self)
        if let value = reader.all(type) { return value }
        return try decode(type, from: bytes)
    }

    /// Encodes a value by its generated code, with `Codable` as the fallback. Throws `EncodingError`.
    package func encode<Value: _WireValue>(wire value: Value, into buffer: inout ByteBuffer) throws {
        let start = buffer.count
        let isWritten = withUnsafeMutablePointer(to: &buffer) { buffer in
            var writer = _WireWriter(buffer, coder: self)
            return writer.writes(value)
        }
        if isWritten { return }
        buffer.truncate(to: start)
        try encode(value, into: &buffer)
    }
}

extension RawRepresentable where Self: _WireValue, RawValue: _WireValue {
    /// Decodes a raw-representable value as the standard library does.
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

    /// Encodes a raw-representable value as the standard library does.
    public func _encodeWireRaw(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
