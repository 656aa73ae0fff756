package import Bytes
public import TrebuchetWire

/// The result of a call that ran in a task; it is encoded by the reactor that answers.
@_documentation(visibility: internal)
public struct _CallResult: Sendable {
    private typealias Write = @Sendable (ValueCoder, inout ByteBuffer) throws -> Void

    private enum Form: Sendable {
        case void
        case encoded([UInt8])
        case value(Write)
    }

    private let form: Form

    public static let void = _CallResult(.void)

    private init(_ form: Form) { self.form = form }

    /// A result that was encoded already; nothing at all for a method without one.
    package init(encoded bytes: [UInt8]) { self.init(bytes.isEmpty ? .void : .encoded(bytes)) }

    /// Whether it is that of a method without one.
    package var isVoid: Bool { if case .void = form { true } else { false } }

    /// Of a result that was encoded already; 0 for another.
    package var byteCount: Int { if case .encoded(let bytes) = form { bytes.count } else { 0 } }

    package func write(with coder: ValueCoder, into buffer: inout ByteBuffer) throws {
        switch form {
        case .void: break
        case .encoded(let bytes): buffer.append(bytes)
        case .value(let write): try write(coder, &buffer)
        }
    }

    public init<Value: Encodable & Sendable>(_ value: Value) throws {
        let write: Write = { (coder: ValueCoder, buffer: inout ByteBuffer) in try coder.encode(value, into: &buffer) }
        self.init(.value(write))
    }

    /// The same of a type that has code made for it.
    public init<Value: _WireValue & Sendable>(_ value: Value) throws {
        let write: Write = { (coder: ValueCoder, buffer: inout ByteBuffer) in
            try coder.encode(wire: value, into: &buffer)
        }
        self.init(.value(write))
    }
}
