/// The members of one message, as ranges in its bytes, without copying or decoding.
///
/// Each reactor reuses one instance, so that scanning needs no allocation.
package struct ScannedEnvelope: Sendable {
    /// The maximum number of arguments of an invocation.
    package static let maximumArguments = 32
    /// The maximum length of a `callID` or `streamID`.
    package static let maximumIdentifierLength = 64

    /// The text of `kind`.
    var type = ByteRange.absent
    package internal(set) var kind = EnvelopeKind.error
    package internal(set) var callID = ByteRange.absent
    package internal(set) var actorID = ByteRange.absent
    package internal(set) var targetIdentifier = ByteRange.absent
    /// JSON values; in versions 1 and 2 base64 strings.
    package internal(set) var arguments: [ByteRange] = []
    package internal(set) var genericSubstitutions: [ByteRange] = []
    package internal(set) var timeoutMilliseconds: Int?
    /// For a call whose response is to be recorded: the connection over which it was first sent. For a `hello`: the connection
    /// that carries it.
    package internal(set) var session = ByteRange.absent
    /// The trace context of a traced call.
    package internal(set) var traceparent = ByteRange.absent
    /// The object of the fields that the caller sends with a call or the start of a stream; within the limits of `MetadataFields`.
    package internal(set) var metadata = ByteRange.absent
    /// The JSON of `AdvertisedLimits` in a `hello`.
    package internal(set) var limits = ByteRange.absent
    /// The identity in the `hello` of a client that exports actors.
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
    /// The message of an `error` object, or the `errorMessage` of versions 1 and 2 and of a `streamError`.
    package internal(set) var errorMessage = ByteRange.absent
    package internal(set) var errorType = ByteRange.absent
    package internal(set) var errorData = ByteRange.absent
    /// The code of a `streamError` or `error` message.
    package internal(set) var code = ByteRange.absent
    package internal(set) var reconnectAfterMilliseconds: Int?
    /// The retry delay of any error.
    package internal(set) var retryAfterMilliseconds: Int?

    package init() {}

    /// Returns the text of a string.
    package func string(_ range: ByteRange, in message: UnsafeRawBufferPointer) -> String {
        guard !range.isAbsent else { return "" }
        return JSONString.text(range.bytes(in: message), isEscaped: range.isEscaped)
    }

    /// Sets the arguments of a message that was scanned elsewhere, at most two; the other properties stay.
    package mutating func replaceArguments(_ count: Int, _ first: ByteRange, _ second: ByteRange) {
        if arguments.count == count {
            // The usual case: several calls of the same method in sequence.
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
        metadata = .absent
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
