package import Transports

/// The failure of a connection attempt, with the decision on a retry.
package struct ConnectionFailure: Equatable, Sendable {
    /// The circumstances in which the client gives up after a failure.
    package enum RetryPolicy: Sendable {
        case never
        /// Only before the first connection since the user requested one. After a connection, address and configuration are known
        /// to be correct, and the failure comes from a substitute for the absent server.
        case atFirst
        /// Always, because the server would respond in the same way again.
        case always
    }

    package let error: TransportError
    package let retryPolicy: RetryPolicy

    package init(_ error: TransportError, _ retryPolicy: RetryPolicy = .never) {
        self.error = error
        self.retryPolicy = retryPolicy
    }

    /// Classifies an error. Status 403, status 401 without another token, and an unsupported protocol are final. Other handshake
    /// failures, and TLS failures, are final before the first connection. Any other status may come from a proxy whose server is
    /// being replaced.
    ///
    /// - Parameter hasTokenProvider: whether the next attempt may use another token.
    package init(_ error: any Error, hasTokenProvider: Bool) {
        guard let error = error as? TransportError else {
            self.init(TransportError(.system, "the transport could not open a connection: \(error)", cause: error))
            return
        }
        switch (error.code, error.cause) {
        case (.handshake, let cause as UnexpectedHTTPStatus):
            self.init(error, cause.status == 403 || cause.status == 401 && !hasTokenProvider ? .always : .never)
        case (.handshake, is SubprotocolNotSupported): self.init(error, .always)
        case (.handshake, _), (.tls, _): self.init(error, .atFirst)
        default: self.init(error)
        }
    }
}
