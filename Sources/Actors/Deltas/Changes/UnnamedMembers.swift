/// Finds the members of a record's JSON that are missing from its ``DeltaRecord/deltaMembers``. Their changes would neither be
/// sent nor persisted.
struct UnnamedMembers {
    /// Returns the missing members of the record and of nested records, as `board.title`. Members that the record encodes only in
    /// some cases may be undetected.
    static func of(_ state: some DeltaState) -> [String] {
        guard let record = state as? any DeltaRecord else { return [] }
        return of(record: record)
    }

    fileprivate static func of(record: some DeltaRecord) -> [String] {
        let found = Cache()
        // Encoding errors are reported by the code that encodes the value.
        try? record.encode(to: MemberEncoder(found: found))
        let names = Set(type(of: record).deltaMembers.map(\.name))
        return found.names.filter { !names.contains($0) } + found.inner
    }

    /// The names that were found, and the missing members of nested records.
    fileprivate final class Cache {
        var names: [String] = []
        var inner: [String] = []
    }
}

/// An encoder that discards values and records the names of the members, including members without a value.
private struct MemberEncoder: Encoder {
    let found: UnnamedMembers.Cache
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Members(found: found))
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer { NoMembers() }
    func singleValueContainer() -> any SingleValueEncodingContainer { NoMembers() }

    /// The top-level members of the record.
    private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let found: UnnamedMembers.Cache
        var codingPath: [any CodingKey] { [] }

        private func recordKey(_ key: Key) { found.names.append(key.stringValue) }

        func encodeNil(forKey key: Key) { recordKey(key) }
        func encode<Value: Encodable>(_ value: Value, forKey key: Key) {
            recordKey(key)
            guard let record = value as? any DeltaRecord else { return }
            found.inner += UnnamedMembers.of(record: record).map { "\(key.stringValue).\($0)" }
        }
        func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Bool?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: String?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Double?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Float?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Int?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Int8?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Int16?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Int32?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: Int64?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: UInt?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: UInt8?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: UInt16?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: UInt32?, forKey key: Key) { recordKey(key) }
        func encodeIfPresent(_ value: UInt64?, forKey key: Key) { recordKey(key) }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            recordKey(key)
            return KeyedEncodingContainer(NoMembersOf<Nested>())
        }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            recordKey(key)
            return NoMembers()
        }
        func superEncoder() -> any Encoder { DiscardingContainer() }
        func superEncoder(forKey key: Key) -> any Encoder {
            recordKey(key)
            return DiscardingContainer()
        }
    }

    /// An encoder for values inside a member, which it discards.
    private struct DiscardingContainer: Encoder {
        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }
        func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
            KeyedEncodingContainer(NoMembersOf<Key>())
        }
        func unkeyedContainer() -> any UnkeyedEncodingContainer { NoMembers() }
        func singleValueContainer() -> any SingleValueEncodingContainer { NoMembers() }
    }

    /// A keyed container that discards its values.
    private struct NoMembersOf<Key: CodingKey>: KeyedEncodingContainerProtocol {
        var codingPath: [any CodingKey] { [] }
        func encodeNil(forKey key: Key) {}
        func encode<Value: Encodable>(_ value: Value, forKey key: Key) {}
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> { KeyedEncodingContainer(NoMembersOf<Nested>()) }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { NoMembers() }
        func superEncoder() -> any Encoder { DiscardingContainer() }
        func superEncoder(forKey key: Key) -> any Encoder { DiscardingContainer() }
    }

    /// An unkeyed or single-value container that discards its values.
    private struct NoMembers: UnkeyedEncodingContainer, SingleValueEncodingContainer {
        var codingPath: [any CodingKey] { [] }
        var count: Int { 0 }
        func encodeNil() {}
        func encode<Value: Encodable>(_ value: Value) {}
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            KeyedEncodingContainer(NoMembersOf<Nested>())
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { NoMembers() }
        func superEncoder() -> any Encoder { DiscardingContainer() }
    }
}
