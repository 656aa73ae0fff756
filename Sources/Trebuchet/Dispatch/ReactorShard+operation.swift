internal import Bytes
internal import TrebuchetWire

extension ReactorShard {
    /// A call as a task is to run it.
    func operation(
        _ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message, _ version: ProtocolVersion
    ) throws -> CallOperation {
        // A task that leaves the reactor has a coder of its own.
        let coder = record.home == nil ? newCoder(for: version) : coder(for: version)
        guard method.runsInPlace else {
            var arguments = CallArguments(
                message: message.bytes, envelope: message.envelope, coder: coder, version: version)
            return try record.prepare(method, &arguments)
        }
        // Earlier calls of this actor have not begun yet, so this one takes its place behind them; or it has an executor of its
        // own.
        let kept = KeptMessage(message)
        return try record.isolated {
            var reply = ByteBuffer()
            try kept.withMessage { message in
                try withUnsafeMutablePointer(to: &reply) { reply in
                    var arguments = CallArguments(
                        message: message.bytes, envelope: message.envelope, coder: coder, version: version)
                    var result = CallReply(reply, coder: coder)
                    try record.call(method, &arguments, &result)
                }
            }
            return CallResult(encoded: Array(reply.bytes))
        }
    }

    /// The arguments as the runtime asks for them.
    func decoder(_ message: borrowing Message, _ version: ProtocolVersion) -> CallInvocationDecoder {
        let envelope = message.envelope
        var arguments: [[UInt8]] = []
        for range in envelope.pointee.arguments {
            let bytes = message.bytes(range)
            arguments.append(
                version == .v3 ? Array(bytes) : (try? withDecodedBase64(bytes) { Array($0) }) ?? [])
        }
        var generics: [String] = []
        for range in envelope.pointee.genericSubstitutions { generics.append(message.text(range)) }
        return CallInvocationDecoder(arguments: arguments, genericNames: generics, coder: newCoder(for: version))
    }
}
