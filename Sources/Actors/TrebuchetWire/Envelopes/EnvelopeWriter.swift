package import Bytes

/// Writes the messages of the protocol directly into a connection's buffer.
///
/// Identifiers are passed as bytes, in the form in which they arrived. They need no escaping, because `ScannedEnvelope` accepts
/// only printable ASCII without escapes.
package enum EnvelopeWriter {
    // MARK: Server to client

    /// Writes the response of a successful call; `result` is JSON, or nil for a method without a result.
    package static func response(
        callID: UnsafeRawBufferPointer, result: UnsafeRawBufferPointer?, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"response","payload":{"callID":"# as StaticString)
        identifier(callID, into: &buffer)
        if let result {
            buffer.append(#","result":"# as StaticString)
            buffer.append(result)
        }
        buffer.append("}}" as StaticString)
    }

    /// Writes the response of a successful traced call, with the span that executed it.
    package static func response(
        callID: UnsafeRawBufferPointer, result: UnsafeRawBufferPointer?, traceparent: String,
        into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"response","payload":{"callID":"# as StaticString)
        identifier(callID, into: &buffer)
        if let result {
            buffer.append(#","result":"# as StaticString)
            buffer.append(result)
        }
        append(traceparent, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    /// Returns the size of a response without a trace.
    @inline(__always)
    package static func responseCount(callID: Int, result: Int) -> Int {
        (#"{"type":"response","payload":{"callID":"","result":}}"# as StaticString).utf8CodeUnitCount
            &+ callID &+ result
    }

    /// Writes the response of a failed call. `type` and `data` (JSON) describe an error thrown by a method.
    package static func failure(
        callID: UnsafeRawBufferPointer, code: ErrorCode, message: String, type: String? = nil, data: [UInt8]? = nil,
        retryAfterMilliseconds: Int? = nil, traceparent: String? = nil, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"response","payload":{"callID":"# as StaticString)
        identifier(callID, into: &buffer)
        buffer.append(#","error":{"code":"# as StaticString)
        JSONString.append(code.rawValue, to: &buffer)
        buffer.append(#","message":"# as StaticString)
        JSONString.append(message, to: &buffer)
        if let type {
            buffer.append(#","type":"# as StaticString)
            JSONString.append(type, to: &buffer)
        }
        if let data {
            buffer.append(#","data":"# as StaticString)
            buffer.append(data)
        }
        retryAfter(retryAfterMilliseconds, into: &buffer)
        buffer.append(0x7D)
        append(traceparent, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    package static func streamStart(
        streamID: [UInt8], callID: UnsafeRawBufferPointer, actorID: String, target: String, epoch: String,
        sequence: UInt64? = nil, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"streamStart","payload":{"streamID":"# as StaticString)
        identifier(streamID, into: &buffer)
        buffer.append(#","callID":"# as StaticString)
        identifier(callID, into: &buffer)
        buffer.append(#","actorID":"# as StaticString)
        JSONString.append(actorID, to: &buffer)
        buffer.append(#","targetIdentifier":"# as StaticString)
        JSONString.append(target, to: &buffer)
        buffer.append(#","epoch":"# as StaticString)
        JSONString.append(epoch, to: &buffer)
        if let sequence {
            buffer.append(#","sequenceNumber":"# as StaticString)
            buffer.append(decimal: sequence)
        }
        buffer.append("}}" as StaticString)
    }

    package static func streamError(
        streamID: [UInt8], message: String, code: ErrorCode, retryAfterMilliseconds: Int? = nil,
        into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"streamError","payload":{"streamID":"# as StaticString)
        identifier(streamID, into: &buffer)
        buffer.append(#","errorMessage":"# as StaticString)
        JSONString.append(message, to: &buffer)
        buffer.append(#","code":"# as StaticString)
        JSONString.append(code.rawValue, to: &buffer)
        retryAfter(retryAfterMilliseconds, into: &buffer)
        buffer.append("}}" as StaticString)
    }

    private static func retryAfter(_ milliseconds: Int?, into buffer: inout ByteBuffer) {
        guard let milliseconds else { return }
        buffer.append(#","retryAfterMilliseconds":"# as StaticString)
        buffer.append(decimal: Int64(milliseconds))
    }

    /// Writes the response to a message outside the protocol.
    package static func error(
        code: ErrorCode, message: String, retryAfterMilliseconds: Int? = nil, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"error","payload":{"code":"# as StaticString)
        JSONString.append(code.rawValue, to: &buffer)
        buffer.append(#","message":"# as StaticString)
        JSONString.append(message, to: &buffer)
        retryAfter(retryAfterMilliseconds, into: &buffer)
        buffer.append("}}" as StaticString)
    }

    package static func goAway(reason: String, reconnectAfterMilliseconds: Int, into buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"goAway","payload":{"reason":"# as StaticString)
        JSONString.append(reason, to: &buffer)
        buffer.append(#","reconnectAfterMilliseconds":"# as StaticString)
        buffer.append(decimal: Int64(reconnectAfterMilliseconds))
        buffer.append("}}" as StaticString)
    }

    /// Writes the server's `hello`: the name of the connection and the limits for it. `pingIntervalMilliseconds` is nil if the
    /// server sends no pings.
    package static func hello(
        session: String, terms: AdvertisedLimits, pingIntervalMilliseconds: Int?, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"hello","payload":{"protocolVersion":3,"session":"# as StaticString)
        JSONString.append(session, to: &buffer)
        buffer.append(#","limits":"# as StaticString)
        terms.append(to: &buffer)
        if let pingIntervalMilliseconds {
            buffer.append(#","pingIntervalMilliseconds":"# as StaticString)
            buffer.append(decimal: Int64(pingIntervalMilliseconds))
        }
        buffer.append("}}" as StaticString)
    }

    // MARK: Both directions

    package static func streamEnd(streamID: [UInt8], reason: StreamEndReason, into buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"streamEnd","payload":{"streamID":"# as StaticString)
        identifier(streamID, into: &buffer)
        buffer.append(#","reason":"# as StaticString)
        JSONString.append(reason.rawValue, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    // MARK: Client to server

    /// Writes a call, from a client or a server. `arguments` are JSON values; nil for the start of a stream. `session` requests
    /// that the response is recorded. `metadata` is the JSON of `MetadataFields`.
    package static func invocation(
        callID: String, actorID: String, target: String, arguments: [[UInt8]]?, genericSubstitutions: [String] = [],
        timeoutMilliseconds: Int? = nil, filter: StreamFilter? = nil, session: String? = nil,
        traceparent: String? = nil, metadata: [UInt8]? = nil,
        isRepeat: Bool = false, into buffer: inout ByteBuffer
    ) {
        if isRepeat {
            buffer.append(#"{"type":"repeat","payload":{"callID":"# as StaticString)
        } else {
            buffer.append(#"{"type":"invocation","payload":{"callID":"# as StaticString)
        }
        JSONString.append(callID, to: &buffer)
        buffer.append(#","actorID":"# as StaticString)
        JSONString.append(actorID, to: &buffer)
        buffer.append(#","targetIdentifier":"# as StaticString)
        JSONString.append(target, to: &buffer)
        if let arguments {
            buffer.append(#","arguments":["# as StaticString)
            for (index, argument) in arguments.enumerated() {
                if index > 0 { buffer.append(0x2C) }
                buffer.append(argument)
            }
            buffer.append(0x5D)
        }
        if !genericSubstitutions.isEmpty {
            buffer.append(#","genericSubstitutions":["# as StaticString)
            for (index, name) in genericSubstitutions.enumerated() {
                if index > 0 { buffer.append(0x2C) }
                JSONString.append(name, to: &buffer)
            }
            buffer.append(0x5D)
        }
        if let timeoutMilliseconds {
            buffer.append(#","timeoutMilliseconds":"# as StaticString)
            buffer.append(decimal: Int64(timeoutMilliseconds))
        }
        append(filter, to: &buffer)
        if let session {
            buffer.append(#","session":"# as StaticString)
            JSONString.append(session, to: &buffer)
        }
        append(traceparent, to: &buffer)
        append(metadata: metadata, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    /// Writes the request to resume a stream of an earlier connection.
    package static func streamResume(
        streamID: String, callID: String, actorID: String, target: String, epoch: String, lastSequence: UInt64,
        filter: StreamFilter? = nil, metadata: [UInt8]? = nil, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"{"type":"streamResume","payload":{"streamID":"# as StaticString)
        JSONString.append(streamID, to: &buffer)
        buffer.append(#","callID":"# as StaticString)
        JSONString.append(callID, to: &buffer)
        buffer.append(#","actorID":"# as StaticString)
        JSONString.append(actorID, to: &buffer)
        buffer.append(#","targetIdentifier":"# as StaticString)
        JSONString.append(target, to: &buffer)
        buffer.append(#","epoch":"# as StaticString)
        JSONString.append(epoch, to: &buffer)
        buffer.append(#","lastSequence":"# as StaticString)
        buffer.append(decimal: lastSequence)
        append(filter, to: &buffer)
        append(metadata: metadata, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    /// Writes the request for the server's `hello`.
    ///
    /// - Parameter client: the identity of a client that exports actors.
    package static func hello(client: String? = nil, into buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"hello","payload":{"# as StaticString)
        if let client {
            buffer.append(#""client":"# as StaticString)
            JSONString.append(client, to: &buffer)
        }
        buffer.append("}}" as StaticString)
    }

    /// Writes the notice that the client will not reconnect: references to its actors become invalid.
    package static func leave(into buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"goAway","payload":{"reason":"closed"}}"# as StaticString)
    }

    package static func cancel(callID: String, into buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"cancel","payload":{"callID":"# as StaticString)
        JSONString.append(callID, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    // MARK: Parts

    private static func append(_ traceparent: String?, to buffer: inout ByteBuffer) {
        guard let traceparent else { return }
        buffer.append(#","traceparent":"# as StaticString)
        JSONString.append(traceparent, to: &buffer)
    }

    private static func append(metadata: [UInt8]?, to buffer: inout ByteBuffer) {
        guard let metadata else { return }
        buffer.append(#","metadata":"# as StaticString)
        buffer.append(metadata)
    }

    private static func append(_ filter: StreamFilter?, to buffer: inout ByteBuffer) {
        guard let filter else { return }
        buffer.append(#","filter":"# as StaticString)
        filter.append(to: &buffer)
    }

    private static func identifier(_ bytes: [UInt8], into buffer: inout ByteBuffer) {
        bytes.withUnsafeBytes { identifier($0, into: &buffer) }
    }

    @inline(__always)
    private static func identifier(_ bytes: UnsafeRawBufferPointer, into buffer: inout ByteBuffer) {
        buffer.append(0x22)
        buffer.append(bytes)
        buffer.append(0x22)
    }
}
