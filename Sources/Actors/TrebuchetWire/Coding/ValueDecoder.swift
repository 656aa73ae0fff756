/// The decoder of one value of a `JSONReader`.
struct ValueDecoder: Decoder {
    let reader: JSONReader
    let mark: Int

    var codingPath: [any CodingKey] { reader.path(to: mark) }
    var userInfo: [CodingUserInfoKey: Any] { reader.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try reader.scan()
        guard reader.first(mark) == 0x7B else { throw reader.mismatch([String: Any].self, mark) }
        return reader.container(type, mark)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try reader.scan()
        guard reader.first(mark) == 0x5B else { throw reader.mismatch([Any].self, mark) }
        return UnkeyedValueDecoder(reader, mark)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        try reader.scan()
        return SingleValueDecoder(reader: reader, mark: mark)
    }
}

/// A keyed container of an object that is being decoded.
struct KeyedValueDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let state: KeyedDecodingState

    /// Calls `body` with the reader, without reference counting: it is alive as long as the container state.
    @inline(__always)
    private func reading<Value>(_ body: (_ reader: JSONReader, _ mark: Int) throws -> Value) rethrows -> Value {
        try state.reader._withUnsafeGuaranteedRef { try body($0, state.mark) }
    }

    var codingPath: [any CodingKey] { reading { $0.path(to: $1) } }
    var allKeys: [Key] { reading { $0.names(of: $1) }.compactMap { Key(stringValue: $0) } }

    func contains(_ key: Key) -> Bool { reading { $0.member(key.stringValue, of: $1, isTaken: false) != nil } }

    func decodeNil(forKey key: Key) throws -> Bool { try decode(key, isTaken: false) { $0.isNull($1) } }

    @inline(__always)
    private func decode<Value>(
        _ key: some CodingKey, isTaken: Bool = true, _ body: (_ reader: JSONReader, _ value: Int) throws -> Value
    ) throws -> Value {
        try reading { reader, mark in
            guard let value = reader.member(key.stringValue, of: mark, isTaken: isTaken) else { throw missing(key) }
            return try body(reader, value)
        }
    }

    private func missing(_ key: some CodingKey) -> DecodingError {
        .keyNotFound(
            key, .init(codingPath: codingPath, debugDescription: "member '\(key.stringValue)' is missing"))
    }

    /// Decodes a member; nil for an absent or null member.
    @inline(__always)
    private func decodeIfPresent<Value>(
        _ key: Key, _ body: (_ reader: JSONReader, _ value: Int) throws -> Value
    ) throws -> Value? {
        try reading { reader, mark in
            guard let value = reader.member(key.stringValue, of: mark, isTaken: true), !reader.isNull(value) else {
                return nil
            }
            return try body(reader, value)
        }
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try decode(key) { try $0.bool($1) } }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try decode(key) { try $0.string($1) } }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try decode(key) { try $0.double($1) } }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try decode(key) { try $0.float($1) } }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try decode(key) { try $0.integer(type, $1) } }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 {
        try decode(key) { try $0.integer(type, $1) }
    }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try decode(key) { try $0.read(type, $1, in: state.mark, $1 - 1) }
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try decodeIfPresent(key) { try $0.bool($1) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try decodeIfPresent(key) { try $0.string($1) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try decodeIfPresent(key) { try $0.double($1) }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try decodeIfPresent(key) { try $0.integer(type, $1) }
    }
    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try decodeIfPresent(key) { try $0.read(type, $1, in: state.mark, $1 - 1) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try decode(key) { try ValueDecoder(reader: $0, mark: $1).container(keyedBy: type) }
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decode(key) { try ValueDecoder(reader: $0, mark: $1).unkeyedContainer() }
    }

    func superDecoder() throws -> any Decoder { superDecoder(named: "super") }
    func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(named: key.stringValue) }

    /// Returns the decoder of a member; an absent one decodes as null, as with Foundation.
    private func superDecoder(named name: String) -> any Decoder {
        reading { ValueDecoder(reader: $0, mark: $0.member(name, of: $1, isTaken: true) ?? JSONReader.noMark) }
    }
}

/// An unkeyed container of an array that is being decoded. It has three words, so that it fits in an existential container.
struct UnkeyedValueDecoder: UnkeyedDecodingContainer {
    private let reader: JSONReader
    private let mark: Int32
    private var next: Int32
    private var index: Int32 = 0
    private let elements: Int32

    init(_ reader: JSONReader, _ mark: Int) {
        self.reader = reader
        self.mark = Int32(truncatingIfNeeded: mark)
        next = Int32(truncatingIfNeeded: mark + 2)
        elements = Int32(truncatingIfNeeded: reader.count(mark))
    }

    var codingPath: [any CodingKey] { reader.path(to: Int(mark)) }
    var count: Int? { Int(elements) }
    var isAtEnd: Bool { index == elements }
    var currentIndex: Int { Int(index) }

    /// Decodes the next element, and advances if `body` does not throw.
    @inline(__always)
    private mutating func decodeNext<Value>(_ type: Value.Type, _ body: (_ mark: Int) throws -> Value) throws -> Value {
        guard index < elements else { throw ended(type) }
        let value = try body(Int(next))
        next = Int32(truncatingIfNeeded: reader.next(Int(next)))
        index &+= 1
        return value
    }

    private func ended(_ type: Any.Type) -> DecodingError {
        .valueNotFound(
            type,
            .init(codingPath: codingPath + [JSONStep(index: currentIndex)], debugDescription: "the array has ended"))
    }

    mutating func decodeNil() throws -> Bool {
        guard index < elements else { throw ended(Any?.self) }
        guard reader.isNull(Int(next)) else { return false }
        next &+= 1
        index &+= 1
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try decodeNext(type, reader.bool) }
    mutating func decode(_ type: String.Type) throws -> String { try decodeNext(type, reader.string) }
    mutating func decode(_ type: Double.Type) throws -> Double { try decodeNext(type, reader.double) }
    mutating func decode(_ type: Float.Type) throws -> Float { try decodeNext(type, reader.float) }
    mutating func decode(_ type: Int.Type) throws -> Int { try integer(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }

    private mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
        let reader = reader
        return try decodeNext(type) { try reader.integer(type, $0) }
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let (reader, mark, index) = (reader, Int(mark), Int(index))
        return try decodeNext(type) { try reader.read(type, $0, in: mark, index) }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        let reader = reader
        return try decodeNext(KeyedDecodingContainer<NestedKey>.self) {
            try ValueDecoder(reader: reader, mark: $0).container(keyedBy: type)
        }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let reader = reader
        return try decodeNext((any UnkeyedDecodingContainer).self) {
            try ValueDecoder(reader: reader, mark: $0).unkeyedContainer()
        }
    }

    mutating func superDecoder() throws -> any Decoder {
        let reader = reader
        return try decodeNext((any Decoder).self) { ValueDecoder(reader: reader, mark: $0) }
    }
}

/// A container for a single value in place of another.
struct SingleValueDecoder: SingleValueDecodingContainer {
    let reader: JSONReader
    let mark: Int

    var codingPath: [any CodingKey] { reader.path(to: mark) }

    func decodeNil() -> Bool { reader.isNull(mark) }
    func decode(_ type: Bool.Type) throws -> Bool { try reader.bool(mark) }
    func decode(_ type: String.Type) throws -> String { try reader.string(mark) }
    func decode(_ type: Double.Type) throws -> Double { try reader.double(mark) }
    func decode(_ type: Float.Type) throws -> Float { try reader.float(mark) }
    func decode(_ type: Int.Type) throws -> Int { try reader.integer(type, mark) }
    func decode(_ type: Int8.Type) throws -> Int8 { try reader.integer(type, mark) }
    func decode(_ type: Int16.Type) throws -> Int16 { try reader.integer(type, mark) }
    func decode(_ type: Int32.Type) throws -> Int32 { try reader.integer(type, mark) }
    func decode(_ type: Int64.Type) throws -> Int64 { try reader.integer(type, mark) }
    func decode(_ type: Int128.Type) throws -> Int128 { try reader.integer(type, mark) }
    func decode(_ type: UInt.Type) throws -> UInt { try reader.integer(type, mark) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try reader.integer(type, mark) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try reader.integer(type, mark) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try reader.integer(type, mark) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try reader.integer(type, mark) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try reader.integer(type, mark) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try reader.read(type, mark, in: JSONReader.noMark, 0)
    }
}

extension DirectJSON {
    /// Decodes the value in place if the decoder belongs to a `ValueCoder`; nil for another decoder. For `init(from:)` of such a
    /// type.
    package static func readDirectly(from decoder: any Decoder) throws -> Self? {
        guard let decoder = decoder as? ValueDecoder, decoder.mark != JSONReader.noMark else { return nil }
        var cursor = decoder.reader.cursor(at: decoder.mark)
        let isAll = !decoder.reader.isScanned
        do {
            let value = try Self(json: &cursor, depth: 0)
            if isAll { try cursor.expectEnd() }
            decoder.reader.isInUse = true
            return value
        } catch let error as EnvelopeError {
            throw ValueError("\(Self.self) does not decode: \(error.message)")
        }
    }
}
