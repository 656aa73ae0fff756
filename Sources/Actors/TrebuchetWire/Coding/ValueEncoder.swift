/// The encoder of one value: a position of a `JSONWriter`.
struct ValueEncoder: Encoder {
    let position: JSONWriterPosition

    init(_ position: JSONWriterPosition) { self.position = position }

    var codingPath: [any CodingKey] { position.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { position.writer.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        position.opened(.object).container(type)
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { UnkeyedValueEncoder(position: position.opened(.array)) }

    func singleValueContainer() -> any SingleValueEncodingContainer { SingleValueEncoder(position: position) }

    /// Writes a value by the code generated for its type. Returns false, with nothing written, if that is not possible.
    func write<Value: _WireValue>(wire value: Value) -> Bool {
        let writer = position.resumed(.empty)
        // Members are added to an existing object.
        guard writer.frames[writer.top].kind == .empty else { return false }
        return writer.write(wire: value)
    }
}

/// A keyed container of an object that is being encoded.
struct KeyedValueEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let state: KeyedEncodingState

    @inline(__always)
    private var position: JSONWriterPosition {
        JSONWriterPosition(writer: state.writer.takeUnretainedValue(), depth: state.depth, serial: state.serial)
    }

    var codingPath: [any CodingKey] { position.codingPath }

    /// Calls `body` with the writer, without reference counting: it is alive as long as the container state.
    @inline(__always)
    private func writing<Result>(_ body: (JSONWriter) throws -> Result) rethrows -> Result {
        try state.writer._withUnsafeGuaranteedRef { writer in
            if writer.top == state.depth, writer.frames[state.depth].serial == state.serial { return try body(writer) }
            return try body(position.resumed(.object))
        }
    }

    /// Writes a member whose value always has a JSON representation.
    @inline(__always)
    private func encode<Result>(_ key: some CodingKey, _ body: (JSONWriter) -> Result) -> Result {
        writing { writer in
            writer.member(key.stringValue)
            return body(writer)
        }
    }

    /// Writes a member whose value may have no JSON representation.
    @inline(__always)
    private func write<Value: Encodable>(_ value: Value, _ key: Key) throws {
        try writing { writer in
            let mark = writer.mark
            writer.member(key.stringValue)
            try writer.write(value, mark)
        }
    }

    func encodeNil(forKey key: Key) { encode(key) { $0.writeNull() } }
    func encode(_ value: Bool, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: String, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: Double, forKey key: Key) throws { try write(value, key) }
    func encode(_ value: Float, forKey key: Key) throws { try write(value, key) }
    func encode(_ value: Int, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: Int8, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: Int16, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: Int32, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: Int64, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: Int128, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: UInt, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: UInt8, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: UInt16, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: UInt32, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: UInt64, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode(_ value: UInt128, forKey key: Key) { encode(key) { _ = $0.write(value) } }
    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try write(value, key) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        encode(key) { position.nested($0, .object).container(keyType) }
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encode(key) { UnkeyedValueEncoder(position: position.nested($0, .array)) }
    }

    func superEncoder() -> any Encoder {
        encode(JSONStep(stringValue: "super")) { ValueEncoder(position.nested($0, .empty)) }
    }

    func superEncoder(forKey key: Key) -> any Encoder { encode(key) { ValueEncoder(position.nested($0, .empty)) } }
}

/// An unkeyed container of an array that is being encoded.
struct UnkeyedValueEncoder: UnkeyedEncodingContainer {
    let position: JSONWriterPosition

    var codingPath: [any CodingKey] { position.codingPath }
    var count: Int { position.count }

    @inline(__always)
    private func startedArray() -> JSONWriter {
        let writer = position.resumed(.array)
        writer.element()
        return writer
    }

    @inline(__always)
    private func write<Value: Encodable>(_ value: Value) throws {
        let writer = position.resumed(.array)
        let mark = writer.mark
        writer.element()
        try writer.write(value, mark)
    }

    func encodeNil() { startedArray().writeNull() }
    func encode(_ value: Bool) { startedArray().write(value) }
    func encode(_ value: String) { startedArray().write(value) }
    func encode(_ value: Double) throws { try write(value) }
    func encode(_ value: Float) throws { try write(value) }
    func encode(_ value: Int) { startedArray().write(value) }
    func encode(_ value: Int8) { startedArray().write(value) }
    func encode(_ value: Int16) { startedArray().write(value) }
    func encode(_ value: Int32) { startedArray().write(value) }
    func encode(_ value: Int64) { startedArray().write(value) }
    func encode(_ value: Int128) { startedArray().write(value) }
    func encode(_ value: UInt) { startedArray().write(value) }
    func encode(_ value: UInt8) { startedArray().write(value) }
    func encode(_ value: UInt16) { startedArray().write(value) }
    func encode(_ value: UInt32) { startedArray().write(value) }
    func encode(_ value: UInt64) { startedArray().write(value) }
    func encode(_ value: UInt128) { startedArray().write(value) }
    func encode<Value: Encodable>(_ value: Value) throws { try write(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        position.nested(startedArray(), .object).container(keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        UnkeyedValueEncoder(position: position.nested(startedArray(), .array))
    }

    func superEncoder() -> any Encoder { ValueEncoder(position.nested(startedArray(), .empty)) }
}

/// A container for a single value in place of another.
struct SingleValueEncoder: SingleValueEncodingContainer {
    let position: JSONWriterPosition

    var codingPath: [any CodingKey] { position.codingPath }

    /// Returns the writer. Throws if a value is written already.
    @inline(__always)
    fileprivate func startedValue() throws -> JSONWriter {
        let writer = position.resumed(.empty)
        guard writer.frames[writer.top].kind == .empty else {
            throw position.refusal("another value was already encoded at the same position")
        }
        writer.frames[writer.top].kind = .single
        return writer
    }

    @inline(__always)
    private func write<Value: Encodable>(_ value: Value) throws {
        let writer = try startedValue()
        try writer.write(value, writer.mark)
    }

    func encodeNil() throws { try startedValue().writeNull() }
    func encode(_ value: Bool) throws { try startedValue().write(value) }
    func encode(_ value: String) throws { try startedValue().write(value) }
    func encode(_ value: Double) throws { try write(value) }
    func encode(_ value: Float) throws { try write(value) }
    func encode(_ value: Int) throws { try startedValue().write(value) }
    func encode(_ value: Int8) throws { try startedValue().write(value) }
    func encode(_ value: Int16) throws { try startedValue().write(value) }
    func encode(_ value: Int32) throws { try startedValue().write(value) }
    func encode(_ value: Int64) throws { try startedValue().write(value) }
    func encode(_ value: Int128) throws { try startedValue().write(value) }
    func encode(_ value: UInt) throws { try startedValue().write(value) }
    func encode(_ value: UInt8) throws { try startedValue().write(value) }
    func encode(_ value: UInt16) throws { try startedValue().write(value) }
    func encode(_ value: UInt32) throws { try startedValue().write(value) }
    func encode(_ value: UInt64) throws { try startedValue().write(value) }
    func encode(_ value: UInt128) throws { try startedValue().write(value) }
    func encode<Value: Encodable>(_ value: Value) throws { try write(value) }
}

extension DirectJSON {
    /// Writes the value directly if the encoder belongs to a `ValueCoder`; false for another encoder. For `encode(to:)` of such a
    /// type.
    package func writeDirectly(to encoder: any Encoder) throws -> Bool {
        guard let encoder = encoder as? ValueEncoder else { return false }
        let writer = try SingleValueEncoder(position: encoder.position).startedValue()
        try writer.writeDirectly(self)
        return true
    }
}
