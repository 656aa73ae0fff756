/// The payload of a close frame: empty, or a code and a reason in UTF-8 (RFC 6455 §5.5.1).
package struct ClosePayload: Equatable, Sendable {
    /// The maximum size of a reason: a control frame's 125 bytes minus two for the code.
    package static let maximumReason = 123

    package let code: WebSocketCloseCode
    package let reason: String

    package init(code: WebSocketCloseCode, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Decodes a payload; an empty one gives code 1005.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> Result<ClosePayload, ProtocolViolation> {
        if bytes.isEmpty { return .success(ClosePayload(code: .noStatus)) }
        guard bytes.count >= 2 else { return .failure(.closePayload) }
        let code = WebSocketCloseCode(rawValue: UInt16(bigEndian: bytes.loadUnaligned(as: UInt16.self)))
        guard code.isSendable else { return .failure(.closeCode) }
        let reason = UnsafeRawBufferPointer(rebasing: bytes[2...])
        var validator = UTF8Validator()
        guard validator.validate(reason), validator.isComplete else { return .failure(.invalidUTF8) }
        return .success(ClosePayload(code: code, reason: String(decoding: reason, as: UTF8.self)))
    }

    /// The bytes to send. A code that must not be sent gives an empty payload. A reason that is too long is truncated at a
    /// scalar.
    package var encoded: [UInt8] {
        guard code.isSendable else { return [] }
        var bytes = [UInt8(code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
        for character in reason.unicodeScalars {
            let encoded = UTF8.encode(character)!
            guard bytes.count + encoded.count <= Self.maximumReason + 2 else { break }
            bytes.append(contentsOf: encoded)
        }
        return bytes
    }
}
