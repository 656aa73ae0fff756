public import TrebuchetClient
internal import Transports

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A way to a server over Foundation's WebSockets, for platforms that have no sockets of ours: the client lives on a Dispatch queue,
/// and what the system has, proxies, VPNs, certificates of the keychain, holds for it.
///
///     let client = TrebuchetClient(transport: URLSessionTransport("wss://example.com"))
///
/// Messages are not compressed. Foundation ends a connection at a message over `TrebuchetClient.Options.messageSize`.
public struct URLSessionTransport: ClientTransport {
    /// As it was given; errors and descriptions of a client name it.
    public let address: String
    private let configuration: @Sendable () -> URLSessionConfiguration

    /// - Parameters:
    ///   - address: `wss://example.com`, or `ws://` for one without TLS; `https://` and `http://` stand for them. A port, a path and a
    ///     query may follow; a user name, a password or a fragment may not. A URL that is invalid makes `connect()` throw
    ///     `addressInvalid`.
    ///   - configuration: asked once for each connection. By default it keeps neither cookies nor caches.
    public init(_ address: String, configuration: @escaping @Sendable () -> URLSessionConfiguration = { .ephemeral }) {
        self.address = address
        self.configuration = configuration
    }

    /// Connects and upgrades, within the request's timeout; returns when messages can be sent. Throws `TransportError`.
    public func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        let upgrade = try request.upgrade(to: address)
        let link = URLSessionLink(receiver, request, address)
        let configuration = configuration
        try await link.open { link in SessionTask(upgrade, configuration(), link, messageSize: request.messageSize) }
    }
}

extension ConnectionRequest {
    /// The request that opens a connection.
    func upgrade(to address: String) throws(TransportError) -> URLRequest {
        let schemes = ["ws": "ws", "wss": "wss", "http": "ws", "https": "wss"]
        func invalid(_ why: String) -> TransportError {
            // A name and a password stand before it.
            let shown = address.lastIndex(of: "@").map { "…\(address[$0...])" } ?? address
            return TransportError(.addressInvalid, "'\(shown)' is not a server's URL (wss://host/path): \(why)")
        }
        guard var parts = URLComponents(string: address),
            let scheme = parts.scheme.flatMap({ schemes[$0.lowercased()] })
        else { throw invalid("the scheme is none of ws, wss, http and https") }
        parts.scheme = scheme
        guard parts.user == nil, parts.password == nil else {
            throw invalid("a user name and a password are not allowed; use a token")
        }
        guard parts.fragment == nil else { throw invalid("a fragment is not allowed") }
        guard parts.host?.isEmpty == false, let url = parts.url else { throw invalid("no host") }
        var request = URLRequest(url: url)
        request.timeoutInterval = timeout / .seconds(1)
        for field in headers.fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
        request.setValue(subprotocol, forHTTPHeaderField: "Sec-WebSocket-Protocol")
        return request
    }
}
