/// The members of one message, found in place: ranges into the bytes, nothing copied and nothing decoded.
///
/// One is kept per reactor and used for message after message, so that scanning takes no memory.
package struct ScannedEnvelope: Sendable {
    /// Arguments that an invocation may have.
    package static let mostArguments = 32
    /// Characters that a callID or streamID may have.
    package static let longestIdentifier = 64

    /// The text that `kind` is read from.
    var type = ByteRange.absent
    package internal(set) var kind = EnvelopeKind.error
    package internal(set) var callID = ByteRange.absent
    package internal(set) var actorID = ByteRange.absent
    package internal(set) var targetIdentifier = ByteRange.absent
    /// JSON values; in versions 1 and 2 strings of base64.
    package internal(set) var arguments: [ByteRange] = []
    package internal(set) var genericSubstitutions: [ByteRange] = []
    package internal(set) var timeoutMilliseconds: Int?
    /// Of a call whose answer the server is to keep: the connection over which it was sent first. Of a `hello`: the connection
    /// that it comes over.
    package internal(set) var session = ByteRange.absent
    /// Of a call that is traced: which trace it is part of.
    package internal(set) var traceparent = ByteRange.absent
    /// Of a `hello`: the JSON of `ServerTerms`.
    package internal(set) var limits = ByteRange.absent
    /// Of a client's `hello`: its identity, when it hands over references to actors of its own.
    package internal(set) var client = ByteRange.absent
    package internal(set) var protocolVersion: Int?
    package internal(set) var filter = ByteRange.absent
    package internal(set) var streamFilter = ByteRange.absent
    package internal(set) var streamID = ByteRange.absent
    package internal(set) var reason = ByteRange.absent
    package internal(set) var epoch = ByteRange.absent
    package internal(set) var lastSequence: UInt64?
    package internal(set) var sequenceNumber: UInt64?
    package internal(set) var timestamp = ByteRange.absent
    package internal(set) var data = ByteRange.absent
    package internal(set) var base: UInt64?
    package internal(set) var patch = ByteRange.absent
    package internal(set) var result = ByteRange.absent
    package internal(set) var hasError = false
    package internal(set) var errorCode = ByteRange.absent
    /// Of an `error` object, or the `errorMessage` of versions 1 and 2 and of a `streamError`.
    package internal(set) var errorMessage = ByteRange.absent
    package internal(set) var errorType = ByteRange.absent
    package internal(set) var errorData = ByteRange.absent
    /// Of a `streamError` or `error` message.
    package internal(set) var code = ByteRange.absent
    package internal(set) var reconnectAfterMilliseconds: Int?
    /// Of any error.
    package internal(set) var retryAfterMilliseconds: Int?

    package init() {}

    /// The text of a string.
    package func string(_ range: ByteRange, in message: UnsafeRawBufferPointer) -> String {
        guard !range.isAbsent else { return "" }
        return JSONString.text(range.bytes(in: message), isEscaped: range.isEscaped)
    }

    /// The arguments of a message that was looked through elsewhere, at most two; what else was found here is left as it was.
    package mutating func replaceArguments(_ count: Int, _ first: ByteRange, _ second: ByteRange) {
        if arguments.count == count {
            // As is so for one call after another of the same method.
            if count > 0 { arguments[0] = first }
            if count > 1 { arguments[1] = second }
            return
        }
        arguments.removeAll(keepingCapacity: true)
        if count > 0 { arguments.append(first) }
        if count > 1 { arguments.append(second) }
    }

    mutating func removeAll() {
        arguments.removeAll(keepingCapacity: true)
        genericSubstitutions.removeAll(keepingCapacity: true)
        type = .absent
        callID = .absent
        actorID = .absent
        targetIdentifier = .absent
        timeoutMilliseconds = nil
        session = .absent
        traceparent = .absent
        limits = .absent
        client = .absent
        protocolVersion = nil
        filter = .absent
        streamFilter = .absent
        streamID = .absent
        reason = .absent
        epoch = .absent
        lastSequence = nil
        sequenceNumber = nil
        timestamp = .absent
        data = .absent
        base = nil
        patch = .absent
        result = .absent
        hasError = false
        errorCode = .absent
        errorMessage = .absent
        errorType = .absent
        errorData = .absent
        code = .absent
        reconnectAfterMilliseconds = nil
        retryAfterMilliseconds = nil
    }
}
