internal import Synchronization
package import Transports

/// A server's certificates, which may be read anew while it runs.
package final class TLSServerIdentity: Sendable {
    private let settings: TLSServerSettings
    private let current: Mutex<TLSContext>

    package init(_ settings: TLSServerSettings) throws(TransportError) {
        self.settings = settings
        current = Mutex(try TLSContext.server(settings))
    }

    /// What new connections use.
    package var context: TLSContext { current.withLock { $0 } }

    /// Reads the files again, for connections from now on; those that exist go on. When the files are no good, it throws
    /// and everything stays as it was.
    package func reload() throws(TransportError) {
        let fresh = try TLSContext.server(settings)
        current.withLock { $0 = fresh }
    }
}
