#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The kind of a message: its `type`.
package enum EnvelopeKind: String, Sendable, CaseIterable {
    case invocation, `repeat`, cancel, response
    case streamStart, streamData, streamEnd, streamError, streamResume
    case error, goAway, hello

    @inline(__always)
    init?(_ name: UnsafeRawBufferPointer) {
        // The kinds on the hot path first.
        if name.equals("invocation") {
            self = .invocation
        } else if name.equals("response") {
            self = .response
        } else if let kind = EnvelopeKind(rawValue: String(decoding: name, as: UTF8.self)) {
            self = kind
        } else {
            return nil
        }
    }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    func equals(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount, let baseAddress else { return false }
        return memcmp(baseAddress, text.utf8Start, count) == 0
    }
}
