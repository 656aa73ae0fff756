internal import Bytes
internal import TrebuchetWire

/// An encoded invocation of a client.
package struct InvocationMessage {
    package let bytes: [UInt8]

    package init(
        number: UInt64, actorID: String, target: String, request: CallRequest? = nil, timeoutMilliseconds: Int? = nil,
        filter: StreamFilter? = nil, session: String? = nil, traceparent: String? = nil, metadata: [UInt8]? = nil,
        isRepeat: Bool = false
    ) {
        var buffer = ByteBuffer(capacity: 160)
        EnvelopeWriter.invocation(
            callID: String(number), actorID: actorID, target: target, arguments: request?.arguments,
            genericSubstitutions: request?.generics ?? [], timeoutMilliseconds: timeoutMilliseconds, filter: filter,
            session: session, traceparent: traceparent, metadata: metadata, isRepeat: isRepeat, into: &buffer)
        bytes = Array(buffer.bytes)
    }
}

/// The other messages of a client.
enum OutgoingMessage {
    /// - Parameter metadata: the JSON of the metadata; nil without any.
    static func start(_ number: UInt64, _ start: StreamRegistry.StartMode, _ metadata: [UInt8]?) -> [UInt8] {
        switch start {
        case .invocation(let target):
            return InvocationMessage(
                number: number, actorID: target.actorID, target: target.name, filter: target.filter,
                metadata: metadata
            ).bytes
        case .resumption(let streamID, let target, let epoch, let lastSequence):
            var buffer = ByteBuffer(capacity: 192)
            EnvelopeWriter.streamResume(
                streamID: streamID, callID: String(number), actorID: target.actorID, target: target.name, epoch: epoch,
                lastSequence: lastSequence, filter: target.filter, metadata: metadata, into: &buffer)
            return Array(buffer.bytes)
        }
    }

    /// Returns a `hello`.
    ///
    /// - Parameter client: the identity of a client that exports actors.
    static func hello(client: String?) -> [UInt8] {
        var buffer = ByteBuffer(capacity: 96)
        EnvelopeWriter.hello(client: client, into: &buffer)
        return Array(buffer.bytes)
    }

    static let leave: [UInt8] = {
        var buffer = ByteBuffer(capacity: 64)
        EnvelopeWriter.leave(into: &buffer)
        return Array(buffer.bytes)
    }()

    static func cancel(_ number: UInt64) -> [UInt8] {
        var buffer = ByteBuffer(capacity: 64)
        EnvelopeWriter.cancel(callID: String(number), into: &buffer)
        return Array(buffer.bytes)
    }

    static func streamEnd(_ streamID: String) -> [UInt8] {
        var buffer = ByteBuffer(capacity: 96)
        EnvelopeWriter.streamEnd(
            streamID: Array(streamID.utf8), reason: .clientUnsubscribed, into: &buffer)
        return Array(buffer.bytes)
    }
}
