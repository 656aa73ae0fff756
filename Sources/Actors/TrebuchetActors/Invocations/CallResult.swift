package import Bytes
public import TrebuchetWire

/// The result of a call that ran in a task. The reactor that sends the response encodes it.
@_documentation(visibility: internal)
public struct _CallResult: Sendable {
    private typealias Write = @Sendable (ValueCoder, inout ByteBuffer) throws -> Void

    /// A result: none, encoded, or a closure that encodes it.
    private enum Form: Sendable {
        case void
        case encoded([UInt8])
        case value(Write)
    }

    private let form: Form

    /// The result of a method without a result.
    public static let void = _CallResult(.void)

    private init(_ form: Form) { self.form = form }

    /// Creates a result from its encoding; empty for a method without a result.
    package init(encoded bytes: [UInt8]) { self.init(bytes.isEmpty ? .void : .encoded(bytes)) }

    /// Whether the method has no result.
    package var isVoid: Bool { if case .void = form { true } else { false } }

    /// The size of an encoded result in bytes; 0 for a result that is not encoded yet.
    package var byteCount: Int { if case .encoded(let bytes) = form { bytes.count } else { 0 } }

    package func write(with coder: ValueCoder, into buffer: inout ByteBuffer) throws {
        switch form {
        case .void: break
        case .encoded(let bytes): buffer.append(bytes)
        case .value(let write): try write(coder, &buffer)
        }
    }

    /// Creates a result that is encoded when the response is written.
    public init<Value: Encodable & Sendable>(_ value: Value) throws {
        let write: Write = { (coder: ValueCoder, buffer: inout ByteBuffer) in try coder.encode(value, into: &buffer) }
        self.init(.value(write))
    }

    /// Creates a result of a type with generated coding.
    public init<Value: _WireValue & Sendable>(_ value: Value) throws {
        let write: Write = { (coder: ValueCoder, buffer: inout ByteBuffer) in
            try coder.encode(wire: value, into: &buffer)
        }
        self.init(.value(write))
    }
}
