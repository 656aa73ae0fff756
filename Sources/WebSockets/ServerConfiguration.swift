internal import Networking

/// What every connection of a server shares.
final class ServerConfiguration: Sendable {
    let limits: WebSocketLimits
    let times: ConnectionTimes
    let addresses: AddressCounter
    let subprotocols: [String]
    let compression: WebSocketCompression?
    let connectionsPerReactor: Int
    let check: (@Sendable (HTTPRequestHead, SocketAddress?) -> HTTPResponse?)?
    let admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)?
    let http: @Sendable (HTTPRequestHead) -> HTTPResponse?
    let accept: @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision

    init(
        limits: WebSocketLimits, subprotocols: [String], compression: WebSocketCompression?, reactors: Int,
        check: (@Sendable (HTTPRequestHead, SocketAddress?) -> HTTPResponse?)?,
        admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)?,
        http: @escaping @Sendable (HTTPRequestHead) -> HTTPResponse?,
        accept: @escaping @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision
    ) {
        self.limits = limits
        times = ConnectionTimes(limits)
        addresses = AddressCounter(limit: limits.connectionsPerAddress)
        self.subprotocols = subprotocols
        self.compression = compression?.bounded
        self.check = check
        self.admit = admit
        self.http = http
        self.accept = accept
        connectionsPerReactor = max(1, limits.connections / reactors)
    }
}
