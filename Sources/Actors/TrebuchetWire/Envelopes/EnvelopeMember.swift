#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The members of envelopes, at any level.
enum EnvelopeMember: UInt8 {
    case unknown
    case type, payload
    case callID, actorID, targetIdentifier, arguments, genericSubstitutions, timeoutMilliseconds, traceparent
    case protocolVersion, filter, streamFilter
    case streamID, reason, epoch, lastSequence, sequenceNumber, timestamp, data, base, patch
    case result, error, code, message, errorMessage, reconnectAfterMilliseconds, retryAfterMilliseconds
    case id, host, port
    case session, limits, client, metadata

    /// Returns the member with this name. The length is tested first: names of equal length differ early.
    @inline(__always)
    init(_ name: UnsafePointer<UInt8>, _ count: Int) {
        @inline(__always) func isName(_ text: StaticString) -> Bool { memcmp(name, text.utf8Start, count) == 0 }
        self = .unknown
        switch count {
        case 2: if isName("id") { self = .id }
        case 4:
            if isName("type") {
                self = .type
            } else if isName("data") {
                self = .data
            } else if isName("base") {
                self = .base
            } else if isName("code") {
                self = .code
            } else if isName("host") {
                self = .host
            } else if isName("port") {
                self = .port
            }
        case 5:
            if isName("epoch") {
                self = .epoch
            } else if isName("patch") {
                self = .patch
            } else if isName("error") {
                self = .error
            }
        case 6:
            if isName("callID") {
                self = .callID
            } else if isName("result") {
                self = .result
            } else if isName("reason") {
                self = .reason
            } else if isName("filter") {
                self = .filter
            } else if isName("limits") {
                self = .limits
            } else if isName("client") {
                self = .client
            }
        case 7:
            if isName("payload") {
                self = .payload
            } else if isName("actorID") {
                self = .actorID
            } else if isName("message") {
                self = .message
            } else if isName("session") {
                self = .session
            }
        case 8:
            if isName("streamID") {
                self = .streamID
            } else if isName("metadata") {
                self = .metadata
            }
        case 9:
            if isName("arguments") {
                self = .arguments
            } else if isName("timestamp") {
                self = .timestamp
            }
        case 11: if isName("traceparent") { self = .traceparent }
        case 12:
            if isName("errorMessage") {
                self = .errorMessage
            } else if isName("streamFilter") {
                self = .streamFilter
            } else if isName("lastSequence") {
                self = .lastSequence
            }
        case 14: if isName("sequenceNumber") { self = .sequenceNumber }
        case 15: if isName("protocolVersion") { self = .protocolVersion }
        case 16: if isName("targetIdentifier") { self = .targetIdentifier }
        case 19: if isName("timeoutMilliseconds") { self = .timeoutMilliseconds }
        case 20: if isName("genericSubstitutions") { self = .genericSubstitutions }
        case 22: if isName("retryAfterMilliseconds") { self = .retryAfterMilliseconds }
        case 26: if isName("reconnectAfterMilliseconds") { self = .reconnectAfterMilliseconds }
        default: break
        }
    }
}

/// The set of members that an object has had, to detect duplicates.
struct MemberSet {
    private var bits: UInt64 = 0

    @inline(__always)
    mutating func insert(_ member: EnvelopeMember) throws(EnvelopeError) {
        let bit = UInt64(1) << UInt64(member.rawValue)
        guard member == .unknown || bits & bit == 0 else { throw EnvelopeError("duplicate member '\(member)'") }
        bits |= bit
    }
}
