internal import COpenSSL
internal import Transports

/// Conversion of OpenSSL errors, with their text.
enum TLSFailure {
    /// Returns the oldest error of this thread's queue, and clears the queue.
    static func current(_ context: String) -> TransportError {
        let number = ERR_get_error()
        ERR_clear_error()
        return TransportError(.tls, "\(context): \(number == 0 ? "unknown TLS error" : text(of: number))")
    }

    /// Returns the error of a connection. A rejected certificate has its own error text.
    static func current(_ context: String, _ ssl: OpaquePointer) -> TransportError {
        let result = SSL_get_verify_result(ssl)
        guard result != X509_V_OK else { return current(context) }
        ERR_clear_error()
        let reason = String(cString: X509_verify_cert_error_string(result))
        return TransportError(.tls, "\(context): the certificate was rejected: \(reason)")
    }

    private static func text(of number: UInt) -> String {
        if let reason = ERR_reason_error_string(number) { return String(cString: reason) }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            ERR_error_string_n(number, buffer.baseAddress, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }
}
