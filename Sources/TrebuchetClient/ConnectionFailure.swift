package import Transports

/// Why an attempt to connect failed, and whether another one could do better.
package struct ConnectionFailure: Equatable, Sendable {
    package let error: TransportError
    /// The server would answer the same again, so the client gives up.
    package let isFinal: Bool

    package init(_ error: TransportError, isFinal: Bool = false) {
        self.error = error
        self.isFinal = isFinal
    }

    /// Final are the answer 403, the answer 401 unless another token may do, certificates that are not accepted and other
    /// failures of TLS, and answers of a server that speaks another protocol. Every other status may be that of a proxy whose
    /// server is being replaced.
    ///
    /// - Parameter hasTokenProvider: whether the next attempt may show another token. A token that cannot be had now may be
    ///   had later.
    package init(_ error: any Error, hasTokenProvider: Bool) {
        guard let error = error as? TransportError else {
            self.init(TransportError(.token, "there is no token to connect with: \(error)", cause: error))
            return
        }
        switch (error.code, (error.cause as? UnexpectedStatus)?.status) {
        case (.handshake, 401?): self.init(error, isFinal: !hasTokenProvider)
        case (.handshake, 403?): self.init(error, isFinal: true)
        case (.handshake, nil), (.tls, _): self.init(error, isFinal: true)
        default: self.init(error)
        }
    }
}
