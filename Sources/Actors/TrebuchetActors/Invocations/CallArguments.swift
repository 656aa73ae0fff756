internal import Bytes
internal import Distributed
public import TrebuchetWire

/// The arguments of a call, decoded one after the other from the message that carries them.
///
/// It points into the message and must not outlive the call. It is not copyable, so that generated code cannot store it.
@_documentation(visibility: internal)
public struct _CallArguments: ~Copyable {
    /// Both live in the stack frame of the session that runs the call, until the call has started.
    private let message: UnsafeRawBufferPointer
    private let envelope: UnsafePointer<ScannedEnvelope>
    /// Retained by the reactor's shard, which outlives every call.
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
    /// The constraints equal those that the compiler puts on the method's own code. A violation is therefore reported at the
    /// table entry, which names the method, and not in code without a source location.
    public mutating func next<Value: Decodable & Sendable>(_ type: Value.Type) throws -> Value {
        try decodeNext { coder, bytes throws in try coder.decode(type, from: bytes) }
    }

    /// Decodes the next argument, of a type with generated coding.
    public mutating func next<Value: _WireValue & Sendable>(_ type: Value.Type) throws -> Value {
        try decodeNext { coder, bytes throws in try coder.decode(wire: type, from: bytes) }
    }

    /// Decodes the next argument, of a type that reads its JSON in one pass.
    package mutating func next<Value: DirectJSON & Decodable & Sendable>(_ type: Value.Type) throws -> Value {
        try decodeNext { _, bytes throws in try Value(json: bytes) }
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
            // For example, an exceeded limit.
            throw TrebuchetError(error.code, "argument \(ordinal + 1): \(error.message)")
        } catch {
            throw TrebuchetError(.invalidArguments, "argument \(ordinal + 1): \(describe(error))")
        }
    }

    /// Returns the type for the generic parameter at `index`.
    public func generic(_ index: Int) throws -> Any.Type {
        guard index < envelope.pointee.genericSubstitutions.count else {
            throw TrebuchetError(
                .invalidArguments, "the type of generic parameter \(index + 1) is missing in genericSubstitutions")
        }
        let name = envelope.pointee.string(envelope.pointee.genericSubstitutions[index], in: message)
        let system = coder._withUnsafeGuaranteedRef { $0.userInfo[.actorSystemKey] as? TrebuchetActorSystem }
        return try (system?.genericTypes ?? .standard).type(named: name)
    }

    /// Returns the error for a type that does not satisfy the requirements of the generic parameter at `index`.
    public func unsatisfied(_ index: Int) -> any Error {
        TrebuchetError(
            .invalidArguments, "the type of generic parameter \(index + 1) does not satisfy the method's requirements")
    }
}

/// Returns the text of an error for the caller.
package func describe(_ error: any Error) -> String {
    if let error = error as? TrebuchetError { return error.message }
    return "\(error)"
}
