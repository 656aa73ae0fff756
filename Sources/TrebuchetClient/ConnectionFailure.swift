package import Transports

/// Why an attempt to connect failed, and whether another one could do better.
package struct ConnectionFailure: Equatable, Sendable {
    /// When the client gives up because of it.
    package enum Finality: Sendable {
        case never
        /// Unless there has been a connection since the user asked for one: then the address is right and the client set up as it
        /// has to be, and what answers now stands in for the server while that is away.
        case atFirst
        /// The server would answer the same again.
        case always
    }

    package let error: TransportError
    package let finality: Finality

    package init(_ error: TransportError, _ finality: Finality = .never) {
        self.error = error
        self.finality = finality
    }

    /// Final are the answer 403, the answer 401 unless another token may do, and a server that says that it does not speak our
    /// protocol. Other failures of a handshake, and those of TLS, are so at first. Every other status may be that of a proxy whose
    /// server is being replaced.
    ///
    /// - Parameter hasTokenProvider: whether the next attempt may show another token.
    package init(_ error: any Error, hasTokenProvider: Bool) {
        guard let error = error as? TransportError else {
            self.init(TransportError(.system, "the transport opened no connection: \(error)", cause: error))
            return
        }
        switch (error.code, error.cause) {
        case (.handshake, let cause as UnexpectedStatus):
            self.init(error, cause.status == 403 || cause.status == 401 && !hasTokenProvider ? .always : .never)
        case (.handshake, is UnspokenProtocol): self.init(error, .always)
        case (.handshake, _), (.tls, _): self.init(error, .atFirst)
        default: self.init(error)
        }
    }
}
