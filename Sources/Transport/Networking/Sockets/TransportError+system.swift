internal import CEpoll
internal import Glibc
package import Transports

extension TransportError {
    /// Returns the error of a system call, as `connecting to 127.0.0.1:8080: Connection refused (connect: ECONNREFUSED)`.
    package static func system(_ call: String, _ number: Int32, _ context: String) -> TransportError {
        let code: Code
        switch number {
        case EADDRINUSE: code = .addressInUse
        case EADDRNOTAVAIL, EAFNOSUPPORT: code = .addressInvalid
        case ECONNREFUSED: code = .refused
        case ETIMEDOUT: code = .timedOut
        case EPIPE, ECONNRESET, ECONNABORTED: code = .closed
        default: code = .system
        }
        let text = String(cString: strerror(number))
        let name = gnu_strerrorname(number).map { String(cString: $0) } ?? "errno \(number)"
        return TransportError(code, "\(context): \(text) (\(call): \(name))")
    }
}
