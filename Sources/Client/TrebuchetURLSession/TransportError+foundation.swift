internal import Foundation
internal import Transports
internal import TrebuchetClient

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension TransportError {
    /// Returns the error of a failed connection attempt.
    ///
    /// - Parameter status: the status of the server's response; nil without a response.
    static func ofOpening(status: Int?, _ error: (any Error)?, _ address: String) -> TransportError {
        if let status, status != 101 {
            let text = "\(address) responded to the upgrade with status \(status)"
            return TransportError(.handshake, text, cause: UnexpectedHTTPStatus(status))
        }
        guard let error else { return TransportError(.closed, "\(address) closed the connection") }
        let text = "\(address) cannot be reached: \(error.localizedDescription)"
        return TransportError(code(of: error), text, cause: error)
    }

    /// Returns the error of an ended connection.
    ///
    /// - Parameter closing: the received close frame; its code is 0 without one.
    static func ofClosing(
        _ closing: (code: Int, reason: String), _ error: (any Error)?, _ address: String
    ) -> TransportError {
        guard closing.code != 0 else {
            let reason = error.map { ": \($0.localizedDescription)" } ?? ""
            return TransportError(.closed, "the connection to \(address) was lost\(reason)", cause: error)
        }
        let reason = closing.reason.isEmpty ? "" : ": \(closing.reason)"
        let text = "the connection to \(address) was closed (\(closing.code)\(reason))"
        // RFC 6455 §7.4.1
        return TransportError(.closed, text, cause: closing.code == 1009 ? MessageTooLarge() : nil)
    }

    private static func code(of error: any Error) -> Code {
        guard let error = error as? URLError else { return .system }
        return switch error.code {
        case .timedOut: .timedOut
        case .badURL, .unsupportedURL, .cannotFindHost, .dnsLookupFailed: .addressInvalid
        case .cannotConnectToHost: .refused
        case .badServerResponse: .handshake
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired:
            .tls
        case .networkConnectionLost, .notConnectedToInternet, .cancelled: .closed
        default: .system
        }
    }
}
