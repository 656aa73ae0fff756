internal import Networking
internal import Synchronization
public import Transports
internal import TrebuchetActors
internal import WebSockets

/// The inspector: what a server has and does, for who develops it.
extension TrebuchetServer {
    /// Where the inspector is, and for whom.
    public struct Inspector: Sendable {
        /// The address that it listens on, one of this machine.
        public let address: SocketAddress
        /// What each request has to show, as `Authorization: Bearer …`. It ends with the server.
        public let token: String
        /// Both together, to be opened in a browser, or handed to `trebuchet inspect --url`. The token stands in the fragment, which no browser
        /// sends.
        public var link: String { "http://\(address)/#token=\(token)" }
    }

    /// Shows the server from inside, at an address of its own at 127.0.0.1, until the server has ended. Before or after `start`, once.
    ///
    /// What it shows is JSON, under `/inspect/…` (`Docs/Observability.md` has the paths), with names of actors and of principals and states of
    /// actors in it; at `/` is a page that shows all of it. A random token of 256 bits is needed for each request but that for the page, and
    /// the names and pages of others are refused. Calls and versions are noted only while somebody looks, and for half a minute after that.
    ///
    /// - Parameters:
    ///   - port: 0, the default, takes a free one.
    ///   - writes: whether who looks may call methods too, as anybody, and cut connections. Each time stands in the log. By default nothing
    ///     is changed.
    /// - Throws: `TransportError`: `addressInvalid` for a second inspector and after the end; else as `start`.
    public func openInspector(port: Int = 0, writes: Bool = false) throws(TransportError) -> Inspector {
        let token = DirectSecrets.randomBytes(32).map { byte in
            String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
        let address = InspectorAddress(self, token: token, writes: writes)
        // Apart from those of the server, so that it answers also while they are held up.
        let listener = try address.listen(port: port, on: try ReactorGroup.clients())
        let isFirst = operatorListeners.withLock { listeners in
            guard listeners.inspector == nil, !isStopping else { return false }
            listeners.inspector = listener
            listeners.endInspection = { address.recorder.end() }
            return true
        }
        guard isFirst else {
            Task { await listener.shutdown() }
            throw TransportError(.addressInvalid, "the server has an inspector already, or has ended")
        }
        return Inspector(address: listener.address, token: token)
    }
}
