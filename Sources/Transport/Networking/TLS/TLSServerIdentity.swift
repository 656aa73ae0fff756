internal import Synchronization
package import Transports

/// A server's certificates, which can be reloaded while it runs.
package final class TLSServerIdentity: Sendable {
    private let settings: TLSServerSettings
    private let current: Mutex<TLSContext>

    package init(_ settings: TLSServerSettings) throws(TransportError) {
        self.settings = settings
        current = Mutex(try TLSContext.server(settings))
    }

    /// The context for new connections.
    package var context: TLSContext { current.withLock { $0 } }

    /// Reads the files again, for future connections; existing ones continue. If the files are invalid, it throws and keeps the
    /// current certificates.
    package func reload() throws(TransportError) {
        let fresh = try TLSContext.server(settings)
        current.withLock { $0 = fresh }
    }
}
