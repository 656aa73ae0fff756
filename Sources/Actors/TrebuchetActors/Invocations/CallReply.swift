package import Bytes
public import TrebuchetWire

/// Writes the result of a call that runs in place to the reactor's reply buffer.
@_documentation(visibility: internal)
public struct _CallReply: ~Copyable {
    /// The buffer of the reactor that runs the call. No other code writes to it until the call has returned.
    private let buffer: UnsafeMutablePointer<ByteBuffer>
    /// Retained by the reactor's shard, which outlives every call.
    private let coder: Unmanaged<ValueCoder>

    package init(_ buffer: UnsafeMutablePointer<ByteBuffer>, coder: Unmanaged<ValueCoder>) {
        self.buffer = buffer
        self.coder = coder
    }

    /// Writes the result. A method without a result writes nothing.
    public mutating func write<Value: Encodable & Sendable>(_ value: Value) throws {
        try coder._withUnsafeGuaranteedRef { try $0.encode(value, into: &buffer.pointee) }
    }

    /// Writes a result of a type with generated coding.
    public mutating func write<Value: _WireValue & Sendable>(_ value: Value) throws {
        try coder._withUnsafeGuaranteedRef { try $0.encode(wire: value, into: &buffer.pointee) }
    }

    public mutating func write(_ value: Int) throws {
        coder._withUnsafeGuaranteedRef { $0.encode(value, into: &buffer.pointee) }
    }

    public mutating func write(_ value: String) throws {
        coder._withUnsafeGuaranteedRef { $0.encode(value, into: &buffer.pointee) }
    }

    public mutating func write(_ value: Bool) throws {
        coder._withUnsafeGuaranteedRef { $0.encode(value, into: &buffer.pointee) }
    }

    public mutating func write(_ value: Double) throws {
        try coder._withUnsafeGuaranteedRef { try $0.encode(value, into: &buffer.pointee) }
    }
}
