package import Bytes
public import TrebuchetWire

/// The result of a call that ran in a task; it is encoded by the reactor that answers.
@_documentation(visibility: internal)
public struct _CallResult: Sendable {
    package typealias Write = @Sendable (ValueCoder, inout ByteBuffer) throws -> Void

    /// Nil for a method without a result.
    package let write: Write?
    /// Of a result that was encoded already; 0 for another.
    package let byteCount: Int

    public static let void = _CallResult(write: nil)

    private init(write: Write?, byteCount: Int = 0) {
        self.write = write
        self.byteCount = byteCount
    }

    /// A result that was encoded already; nothing at all for a method without one.
    package init(encoded bytes: [UInt8]) {
        self.init(
            write: bytes.isEmpty ? nil : { @Sendable (_, buffer) in buffer.append(bytes) }, byteCount: bytes.count)
    }

    public init<Value: Encodable & Sendable>(_ value: Value) throws {
        let write: Write = { (coder: ValueCoder, buffer: inout ByteBuffer) in try coder.encode(value, into: &buffer) }
        self.init(write: write)
    }

    /// The same of a type that has code made for it.
    public init<Value: _WireValue & Sendable>(_ value: Value) throws {
        let write: Write = { (coder: ValueCoder, buffer: inout ByteBuffer) in
            try coder.encode(wire: value, into: &buffer)
        }
        self.init(write: write)
    }
}
