internal import Bytes
internal import TrebuchetWire

extension ServerShard {
    /// Calls a synchronous method of an actor that lives on this reactor. The result lies in `reply`.
    @inline(__always)
    func callInPlace(
        _ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer, _ version: ProtocolVersion
    ) throws {
        let coder = states.coder(for: version)
        reply.pointee.removeAll()
        var arguments = CallArguments(message: message, envelope: envelope, coder: coder, version: version)
        var result = CallReply(reply, coder: coder)
        try record.call(method, &arguments, &result)
    }

    /// The call as a task is to run it.
    func operation(
        _ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer, _ version: ProtocolVersion
    ) throws -> CallOperation {
        guard method.runsInPlace else {
            var arguments = CallArguments(
                message: message, envelope: envelope, coder: states.coder(for: version), version: version)
            return try record.prepare(method, &arguments)
        }
        // Earlier calls of this actor have not begun yet: this one takes its place behind them.
        let copy = Array(message)
        return try record.isolated {
            try copy.withUnsafeBytes { message in
                try self.envelope.pointee.scan(message)
                try self.callInPlace(record, method, message, version)
                return CallResult(encoded: Array(self.reply.pointee.bytes))
            }
        }
    }

    /// Runs a call that came in on another reactor, for an actor of this one.
    func run(
        _ record: ActorRecord, _ method: ActorMethod, _ message: [UInt8], _ version: ProtocolVersion,
        _ call: RunningCall, _ completion: @escaping @Sendable (Result<CallResult, any Error>) -> Void
    ) {
        message.withUnsafeBytes { message in
            do {
                try envelope.pointee.scan(message)
                if method.runsInPlace, record.starting == 0 {
                    try callInPlace(record, method, message, version)
                    completion(.success(CallResult(encoded: Array(reply.pointee.bytes))))
                } else {
                    CallTask.start(record, try operation(record, method, message, version), call, completion)
                }
            } catch {
                completion(.failure(error))
            }
        }
    }
}

/// Starts the task of a call.
enum CallTask {
    /// Runs `operation` on the actor's reactor; `completion` is called on the thread where it ends.
    static func start(
        _ record: ActorRecord, _ operation: @escaping CallOperation, _ call: RunningCall,
        _ completion: @escaping @Sendable (Result<CallResult, any Error>) -> Void
    ) {
        if record.home != nil { record.starting += 1 }
        let deadline = call.deadline
        let body: @Sendable () async -> Void = {
            let outcome: Result<CallResult, any Error>
            do {
                outcome = .success(try await Deadline.$current.withValue(deadline, operation: operation))
            } catch {
                outcome = .failure(error)
            }
            completion(outcome)
        }
        // `immediate`: the task reaches the actor's queue before this returns, so calls keep their order.
        let task =
            if let home = record.home {
                Task.immediate(executorPreference: home.reactor) { await body() }
            } else {
                Task.immediate { await body() }
            }
        call.run(in: task)
    }
}
