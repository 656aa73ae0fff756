internal import TrebuchetWire

extension JSONValue {
    /// Returns the reason why the value does not decode as an element: the member that is missing or of another type. It
    /// decodes the value once more.
    func mismatch(_ type: (some Decodable).Type) -> String { Self.mismatch(self, type) }

    private static func mismatch<Element: Decodable>(_ value: JSONValue, _ type: Element.Type) -> String {
        do {
            return try value.decode(DecodingDiagnosis<Element>.self).reason ?? "it is not of type \(type)"
        } catch {
            return "it is not of type \(type)"
        }
    }
}

/// Decodes an element to find the reason of an error. A decoder's errors lack the type of a missing member; this decoder
/// requests each member with its type.
private struct DecodingDiagnosis<Element: Decodable>: Decodable {
    let reason: String?

    init(from decoder: any Decoder) {
        do {
            _ = try Element(from: NamingDecoder(base: decoder))
            reason = nil
        } catch let mismatch as DecodingMismatch {
            reason = mismatch.text
        } catch {
            reason = DecodingMismatch(error, [], Element.self).text
        }
    }
}

private struct DecodingMismatch: Error {
    let text: String

    init(text: String) { self.text = text }

    /// - Parameter path: the path of the value that failed to decode.
    init(_ error: any Error, _ path: [any CodingKey], _ type: Any.Type) {
        func name(_ path: [any CodingKey]) -> String {
            let names = path.map { $0.intValue.map(String.init) ?? $0.stringValue }
            // Names from a peer may be long.
            return "'\(String(decoding: names.joined(separator: ".").utf8.prefix(128), as: UTF8.self))'"
        }
        switch error {
        case DecodingError.keyNotFound(let key, let context): text = "no member \(name(context.codingPath + [key]))"
        case DecodingError.typeMismatch(let type, let context) where context.codingPath.count > path.count,
            DecodingError.valueNotFound(let type, let context) where context.codingPath.count > path.count:
            text = "its member \(name(context.codingPath)) is not of type \(type)"
        case DecodingError.dataCorrupted(let context) where context.codingPath.count > path.count:
            text = "its member \(name(context.codingPath)) does not decode"
        default: text = path.isEmpty ? "it is not of type \(type)" : "its member \(name(path)) is not of type \(type)"
        }
    }
}

private struct NamingDecoder: Decoder {
    let base: any Decoder

    var codingPath: [any CodingKey] { base.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { base.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(NamingMembers(base: try base.container(keyedBy: type)))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try base.unkeyedContainer() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { try base.singleValueContainer() }
}

private struct NamingMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let base: KeyedDecodingContainer<Key>

    var codingPath: [any CodingKey] { base.codingPath }
    var allKeys: [Key] { base.allKeys }
    func contains(_ key: Key) -> Bool { base.contains(key) }
    func decodeNil(forKey key: Key) throws -> Bool { try base.decodeNil(forKey: key) }

    private func named<Value>(_ type: Value.Type, _ key: Key, _ value: () throws -> Value) throws -> Value {
        guard base.contains(key) else { throw DecodingMismatch(text: "no member '\(key.stringValue)' (\(type))") }
        do {
            return try value()
        } catch {
            throw DecodingMismatch(error, codingPath + [key], type)
        }
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try named(type, key) { try base.decode(type, forKey: key) }
    }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try named(type, key) { try base.decode(type, forKey: key) }
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try base.nestedContainer(keyedBy: type, forKey: key) }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try base.nestedUnkeyedContainer(forKey: key)
    }
    func superDecoder() throws -> any Decoder { try base.superDecoder() }
    func superDecoder(forKey key: Key) throws -> any Decoder { try base.superDecoder(forKey: key) }
}

/// A document that does not decode as the app's type.
public struct UnreadableDocument: Sendable, Hashable {
    /// The id of the document.
    public let id: String
    /// The member that is missing, or of another type.
    public let reason: String

    var error: CollectionError { .unreadable(id: id, reason: reason) }
}
