internal import Bytes
public import TrebuchetWire

/// The arguments of a call, decoded one after the other from the message that carries them.
///
/// It points into the message and must not outlive the call; that it cannot be copied keeps generated code from storing it.
@_documentation(visibility: internal)
public struct _CallArguments: ~Copyable {
    /// Both live in the frame of the session that runs the call, for as long as the call is being started.
    private let message: UnsafeRawBufferPointer
    private let envelope: UnsafePointer<ScannedEnvelope>
    /// Kept by the reactor's shard, which outlives every call.
    private let coder: Unmanaged<ValueCoder>
    private var index = 0

    package init(
        message: UnsafeRawBufferPointer, envelope: UnsafePointer<ScannedEnvelope>, coder: Unmanaged<ValueCoder>
    ) {
        self.message = message
        self.envelope = envelope
        self.coder = coder
    }

    /// Decodes the next argument. Throws `TrebuchetError` with `invalidArguments`.
    ///
    /// It asks for what the compiler asks of the method's own code too, and so says it of the entry, which names the method, instead of
    /// code that stands nowhere.
    public mutating func next<Value: Decodable & Sendable>(_ type: Value.Type) throws -> Value {
        try decodeNext { coder, bytes throws in try coder.decode(type, from: bytes) }
    }

    /// The same of a type that has code made for it.
    public mutating func next<Value: _WireValue & Sendable>(_ type: Value.Type) throws -> Value {
        try decodeNext { coder, bytes throws in try coder.decode(wire: type, from: bytes) }
    }

    public mutating func next(_ type: Int.Type) throws -> Int {
        try decodeNext { coder, bytes throws in try coder.decode(type, from: bytes) }
    }

    public mutating func next(_ type: String.Type) throws -> String {
        try decodeNext { coder, bytes throws in try coder.decode(type, from: bytes) }
    }

    public mutating func next(_ type: Bool.Type) throws -> Bool {
        try decodeNext { coder, bytes throws in try coder.decode(type, from: bytes) }
    }

    public mutating func next(_ type: Double.Type) throws -> Double {
        try decodeNext { coder, bytes throws in try coder.decode(type, from: bytes) }
    }

    @inline(__always)
    private mutating func decodeNext<Value>(
        _ decode: (ValueCoder, UnsafeRawBufferPointer) throws -> Value
    ) throws -> Value {
        let ordinal = index
        index += 1
        guard ordinal < envelope.pointee.arguments.count else {
            throw TrebuchetError(.invalidArguments, "argument \(ordinal + 1) is missing")
        }
        let bytes = envelope.pointee.arguments[ordinal].bytes(in: message)
        do {
            return try coder._withUnsafeGuaranteedRef { try decode($0, bytes) }
        } catch let error as TrebuchetError {
            // A limit, for one.
            throw TrebuchetError(error.code, "argument \(ordinal + 1): \(error.message)")
        } catch {
            throw TrebuchetError(.invalidArguments, "argument \(ordinal + 1): \(describe(error))")
        }
    }

    /// The type that stands for the generic parameter at `index`.
    public func generic(_ index: Int) throws -> Any.Type {
        guard index < envelope.pointee.genericSubstitutions.count else {
            throw TrebuchetError(
                .invalidArguments, "the type of generic parameter \(index + 1) is missing in genericSubstitutions")
        }
        let name = envelope.pointee.string(envelope.pointee.genericSubstitutions[index], in: message)
        return try GenericTypes.type(named: name)
    }

    /// The error for a type that does not fulfil what the generic parameter at `index` requires.
    public func unsatisfied(_ index: Int) -> any Error {
        TrebuchetError(
            .invalidArguments, "the type of generic parameter \(index + 1) does not fulfil the method's requirements")
    }
}

/// The text of an error for the one who made the call.
package func describe(_ error: any Error) -> String {
    if let error = error as? TrebuchetError { return error.message }
    return "\(error)"
}
