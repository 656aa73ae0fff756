internal import Bytes

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A JSON writer for generated code.
///
/// It points to a buffer and must not outlive the encoding. It is not copyable, so that generated code cannot store it.
@_documentation(visibility: internal)
public struct _WireWriter: ~Copyable {
    /// The output. During the encoding, only this writer and the values that it encodes write to it.
    let buffer: UnsafeMutablePointer<ByteBuffer>
    /// The number of open arrays and objects, including those around the value.
    private var level: Int
    /// The coder for values that encode themselves; nil inside another writer. Both outlive this object.
    private let coder: Unmanaged<ValueCoder>?
    private let source: Unmanaged<JSONWriter>?

    init(_ buffer: UnsafeMutablePointer<ByteBuffer>, coder: ValueCoder) {
        self.buffer = buffer
        self.coder = .passUnretained(coder)
        source = nil
        level = 0
    }

    init(_ buffer: UnsafeMutablePointer<ByteBuffer>, level: Int, source: JSONWriter) {
        self.buffer = buffer
        self.level = level
        coder = nil
        self.source = .passUnretained(source)
    }

    /// Writes a value. Returns false if it is unsupported.
    mutating func writes<Value: _WireValue>(_ value: Value) -> Bool {
        (try? value._write(wire: &self)) != nil
    }

    // MARK: Objects

    /// Writes the start of an object.
    public mutating func begin() throws {
        try open()
        buffer.pointee.append(0x7B)
    }

    /// Writes the end of an object.
    public mutating func end() {
        level &-= 1
        buffer.pointee.append(0x7D)
    }

    private mutating func open() throws {
        guard level < JSONWriter.maximumDepth else { throw WireCodeFallback() }
        level &+= 1
    }

    /// Writes a member.
    @inlinable
    public mutating func member<Value: _WireValue>(_ name: StaticString, _ value: Value) throws {
        put(name)
        try value._write(wire: &self)
    }

    /// Writes a member that is omitted if it is nil.
    @inlinable
    public mutating func member<Value: _WireValue>(_ name: StaticString, _ value: Value?) throws {
        guard let value else { return }
        put(name)
        try value._write(wire: &self)
    }

    /// Writes a member that encodes itself.
    @_disfavoredOverload
    public mutating func member<Value: Encodable>(_ name: StaticString, _ value: Value) throws {
        put(name)
        try encode(value)
    }

    /// Writes a member that encodes itself and is omitted if it is nil.
    @_disfavoredOverload
    public mutating func member<Value: Encodable>(_ name: StaticString, _ value: Value?) throws {
        guard let value else { return }
        put(name)
        try encode(value)
    }

    /// Starts a member.
    ///
    /// - Parameter name: in quotes, followed by a colon.
    @usableFromInline
    mutating func put(_ name: StaticString) {
        // No value ends with an opening brace.
        let isFirst = buffer.pointee.bytes[buffer.pointee.count - 1] == 0x7B
        let count = name.utf8CodeUnitCount
        buffer.pointee.append(count: isFirst ? count : count &+ 1) { target in
            target[0] = 0x2C
            memcpy(isFirst ? target : target + 1, name.utf8Start, count)
        }
    }

    private func encode<Value: Encodable>(_ value: Value) throws {
        // The other encoder does not count the nesting of its output.
        guard level < JSONCursor.maximumDepth else { throw WireCodeFallback() }
        if let coder { return try coder._withUnsafeGuaranteedRef { try $0.encode(value, into: &buffer.pointee) } }
        let userInfo = source?._withUnsafeGuaranteedRef { $0.userInfo } ?? [:]
        try ValueCoder(userInfo: userInfo).encode(value, into: &buffer.pointee)
    }

    /// Writes a raw-representable value by its raw value.
    @inlinable
    public mutating func raw<Value: RawRepresentable>(_ value: Value) throws where Value.RawValue: _WireValue {
        try value.rawValue._write(wire: &self)
    }

    // MARK: Arrays

    /// Writes the start of an array.
    public mutating func beginArray() throws {
        try open()
        buffer.pointee.append(0x5B)
    }

    /// Writes the comma before the next element.
    public mutating func nextElement() { buffer.pointee.append(0x2C) }

    /// Writes the end of an array.
    public mutating func endArray() {
        level &-= 1
        buffer.pointee.append(0x5D)
    }

    /// Writes a null.
    public mutating func null() { buffer.pointee.append("null" as StaticString) }
}
