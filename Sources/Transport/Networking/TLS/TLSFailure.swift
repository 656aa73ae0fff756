internal import COpenSSL
internal import Transports

/// Conversion of OpenSSL errors, with their text.
enum TLSFailure {
    /// OpenSSL adds this offset (SSL_AD_REASON_OFFSET) to the number of an alert that the peer has sent.
    private static let alerts: Int32 = 1000
    /// The alerts about the certificate of this side (RFC 8446 §6.2).
    private static let rejections: [Int32: String] = [
        42: "the peer rejected the certificate of this side",
        45: "the peer rejected the certificate of this side: it has expired, by the peer's clock",
        48: "the peer rejected the certificate of this side: the peer does not trust its authority",
        116: "the peer requires a certificate",
    ]

    /// Returns the oldest error of this thread's queue, and clears the queue.
    static func current(_ context: String) -> TransportError {
        let number = ERR_get_error()
        ERR_clear_error()
        return TransportError(.tls, "\(context): \(number == 0 ? "unknown TLS error" : text(of: number))")
    }

    /// Returns the error of a connection. A rejected certificate has its own error text.
    static func current(_ context: String, _ ssl: OpaquePointer) -> TransportError {
        // Without verification there is a result as well.
        guard ERR_GET_REASON(ERR_peek_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED else { return current(context) }
        let result = SSL_get_verify_result(ssl)
        ERR_clear_error()
        var reason = String(cString: X509_verify_cert_error_string(result))
        if result == X509_V_ERR_HOSTNAME_MISMATCH, let name = expectedName(ssl) { reason += ", expected \(name)" }
        return TransportError(.tls, "\(context): the certificate was rejected: \(reason)")
    }

    /// The name that the certificate of the peer must have.
    private static func expectedName(_ ssl: OpaquePointer) -> String? {
        X509_VERIFY_PARAM_get0_host(SSL_get0_param(ssl), 0).map { String(cString: $0) }
    }

    private static func text(of number: UInt) -> String {
        if let rejection = rejections[ERR_GET_REASON(number) - alerts] { return rejection }
        if let reason = ERR_reason_error_string(number) { return String(cString: reason) }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            ERR_error_string_n(number, buffer.baseAddress, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }
}
