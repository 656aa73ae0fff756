internal import Networking
internal import Synchronization
public import Transports
internal import TrebuchetActors
internal import WebSockets

/// The inspector: what a server has and does, for who develops it.
extension TrebuchetServer {
    /// Where the inspector is, and for whom.
    public struct Inspector: Sendable, CustomStringConvertible {
        /// The address that it listens on.
        public let address: SocketAddress
        /// Whether it is an `https:` address.
        public let isSecure: Bool
        /// What each request has to show, as `Authorization: Bearer …`. It ends with the server.
        public let token: String
        /// Both together, to be opened in a browser, or handed to `trebuchet inspect --url`. The token stands in the fragment, which no browser
        /// sends.
        public var link: String { "\(url)#token=\(token)" }
        /// The address without the token, for who has that already.
        public var url: String { "\(isSecure ? "https" : "http")://\(address)/" }
        /// The same: who prints it does not print the token.
        public var description: String { url }
    }

    /// Shows the server from inside, at an address of its own, until the server has ended. Before or after `start`, once.
    ///
    /// What it shows is JSON, under `/inspect/…` (`Docs/Observability.md` has the paths), with names of actors and of principals and states of
    /// actors in it; at `/` is a page that shows all of it. The token is needed for each request but that for the page, and
    /// the names and pages of others are refused. Calls and versions are noted only while somebody looks, and for half a minute after that.
    ///
    /// - Parameters:
    ///   - host: an address of this machine alone, by default 127.0.0.1, unless `tls` and `token` are given.
    ///   - port: 0, the default, takes a free one.
    ///   - tls: makes it `https:`.
    ///   - token: 16 bytes or more. Nil, the default, makes one of 256 random bits.
    ///   - writes: whether who looks may call methods too, as anybody, and cut connections. Each time stands in the log. By default nothing
    ///     is changed.
    /// - Throws: `TransportError`: `addressInvalid` for an address that others reach without `tls` and `token`, for a token that is too short,
    ///   for a second inspector and after the end; else as `start`.
    public func openInspector(
        host: String = "127.0.0.1", port: Int = 0, tls: TLSServerSettings? = nil, token given: String? = nil,
        writes: Bool = false
    ) throws(TransportError) -> Inspector {
        try OperatorDoor.check("the inspector", at: host, tls, given)
        let token =
            given
            ?? DirectSecrets.randomBytes(32).map { byte in
                String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
            }.joined()
        // Apart from those of the server, so that it answers also while they are held up.
        let reactors = try ReactorGroup.clients()
        let address = InspectorAddress(self, token: token, writes: writes, on: reactors)
        let listener = try address.listen(host: host, port: port, tls: tls, on: reactors)
        // A name may lead elsewhere than it says.
        guard tls != nil && given != nil || OperatorDoor.isLoopback(listener.address) else {
            Task {
                await listener.shutdown()
                await address.end()
            }
            throw TransportError(.addressInvalid, "others reach '\(host)', which is \(listener.address)")
        }
        let isFirst = operatorListeners.withLock { listeners in
            guard listeners.inspector == nil, !isStopping else { return false }
            listeners.inspector = listener
            listeners.endInspection = { await address.end() }
            return true
        }
        guard isFirst else {
            Task {
                await listener.shutdown()
                await address.end()
            }
            throw TransportError(.addressInvalid, "the server has an inspector already, or has ended")
        }
        return Inspector(address: listener.address, isSecure: tls != nil, token: token)
    }
}
