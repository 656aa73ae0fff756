internal import Bytes

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Writes JSON for code that is made for a type.
///
/// It points to a buffer and must not outlive the writing; that it cannot be copied keeps generated code from storing it.
@_documentation(visibility: internal)
public struct _WireWriter: ~Copyable {
    /// Nobody else writes to it meanwhile but a value that encodes itself, whom this asks to.
    let buffer: UnsafeMutablePointer<ByteBuffer>
    let dates: DateForm
    /// Arrays and objects that are open, those around the value included.
    private var level: Int
    /// For values that encode themselves; nil when somebody else's writer is asked for what it takes. Both outlive this.
    private let coder: Unmanaged<ValueCoder>?
    private let source: Unmanaged<JSONWriter>?

    init(_ buffer: UnsafeMutablePointer<ByteBuffer>, _ dates: DateForm, coder: ValueCoder) {
        self.buffer = buffer
        self.dates = dates
        self.coder = .passUnretained(coder)
        source = nil
        level = 0
    }

    init(_ buffer: UnsafeMutablePointer<ByteBuffer>, level: Int, source: JSONWriter) {
        self.buffer = buffer
        self.level = level
        dates = source.dates
        coder = nil
        self.source = .passUnretained(source)
    }

    /// Whether all of the value could be written.
    mutating func writes<Value: _WireValue>(_ value: Value) -> Bool {
        (try? value._write(wire: &self)) != nil
    }

    // MARK: Objects

    public mutating func begin() throws {
        try open()
        buffer.pointee.append(0x7B)
    }

    public mutating func end() {
        level &-= 1
        buffer.pointee.append(0x7D)
    }

    private mutating func open() throws {
        guard level < JSONWriter.deepest else { throw WireMiss() }
        level &+= 1
    }

    @inlinable
    public mutating func member<Value: _WireValue>(_ name: StaticString, _ value: Value) throws {
        put(name)
        try value._write(wire: &self)
    }

    /// One that is absent when it is nil.
    @inlinable
    public mutating func member<Value: _WireValue>(_ name: StaticString, _ value: Value?) throws {
        guard let value else { return }
        put(name)
        try value._write(wire: &self)
    }

    /// One that encodes itself.
    @_disfavoredOverload
    public mutating func member<Value: Encodable>(_ name: StaticString, _ value: Value) throws {
        put(name)
        try encode(value)
    }

    @_disfavoredOverload
    public mutating func member<Value: Encodable>(_ name: StaticString, _ value: Value?) throws {
        guard let value else { return }
        put(name)
        try encode(value)
    }

    /// Begins a member.
    ///
    /// - Parameter name: in quotes, with the colon behind it.
    @usableFromInline
    mutating func put(_ name: StaticString) {
        // No value ends with a brace that opens.
        let isFirst = buffer.pointee.bytes[buffer.pointee.count - 1] == 0x7B
        let count = name.utf8CodeUnitCount
        buffer.pointee.append(count: isFirst ? count : count &+ 1) { target in
            target[0] = 0x2C
            memcpy(isFirst ? target : target + 1, name.utf8Start, count)
        }
    }

    private func encode<Value: Encodable>(_ value: Value) throws {
        // What it nests in is counted by nobody then.
        guard level < JSONCursor.deepest else { throw WireMiss() }
        if let coder { return try coder._withUnsafeGuaranteedRef { try $0.encode(value, into: &buffer.pointee) } }
        let userInfo = source?._withUnsafeGuaranteedRef { $0.userInfo } ?? [:]
        try ValueCoder(dates: dates, userInfo: userInfo).encode(value, into: &buffer.pointee)
    }

    /// Writes a value that is known by its raw value.
    @inlinable
    public mutating func raw<Value: RawRepresentable>(_ value: Value) throws where Value.RawValue: _WireValue {
        try value.rawValue._write(wire: &self)
    }

    // MARK: Arrays

    public mutating func beginArray() throws {
        try open()
        buffer.pointee.append(0x5B)
    }

    public mutating func nextElement() { buffer.pointee.append(0x2C) }

    public mutating func endArray() {
        level &-= 1
        buffer.pointee.append(0x5D)
    }

    public mutating func null() { buffer.pointee.append("null" as StaticString) }
}
