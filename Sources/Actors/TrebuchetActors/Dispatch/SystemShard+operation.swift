internal import Bytes
internal import TrebuchetWire

extension SystemShard {
    /// Returns the operation that a task runs for a call.
    package func operation(
        _ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message
    ) throws -> CallOperation {
        // A task that leaves the reactor needs a separate coder.
        let coder = record.home == nil ? makeCoder() : coder
        if let prepare = method.prepare {
            return try withExtendedLifetime(coder) {
                var arguments = _CallArguments(
                    message: message.bytes, envelope: message.envelope, coder: .passUnretained(coder))
                return try prepare(record, &arguments)
            }
        }
        // Earlier calls of this actor have not started yet, so this call is queued behind them; or the actor has a custom
        // executor.
        let owned = OwnedMessage(message)
        return try record.isolated {
            var reply = ByteBuffer()
            try withExtendedLifetime(coder) {
                try owned.withMessage { message in
                    try withUnsafeMutablePointer(to: &reply) { reply in
                        var arguments = _CallArguments(
                            message: message.bytes, envelope: message.envelope, coder: .passUnretained(coder))
                        var result = _CallReply(reply, coder: .passUnretained(coder))
                        try record.call(method, &arguments, &result)
                    }
                }
            }
            return _CallResult(encoded: Array(reply.bytes))
        }
    }
}
