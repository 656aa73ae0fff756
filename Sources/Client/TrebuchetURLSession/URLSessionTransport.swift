public import TrebuchetClient
internal import Transports

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport over Foundation's WebSockets, for platforms without epoll. The client runs on a Dispatch queue and uses the
/// system's proxies, VPNs and keychain certificates.
///
///     let client = TrebuchetClient(transport: URLSessionTransport("wss://example.com"))
///
/// Messages are not compressed. Foundation ends a connection at a message over `TrebuchetClient.Options.messageSize`.
public struct URLSessionTransport: ClientTransport {
    /// The address as given, for errors and descriptions of a client.
    public let address: String
    private let configuration: @Sendable () -> URLSessionConfiguration

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - address: `wss://example.com`, or `ws://` without TLS; `https://` and `http://` are aliases. A port, a path and a
    ///     query may follow; a user name, a password or a fragment may not. An invalid URL makes `connect()` throw
    ///     `addressInvalid`.
    ///   - configuration: called once for each connection. By default it stores neither cookies nor caches.
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
    /// Returns the request that opens a connection.
    func upgrade(to address: String) throws(TransportError) -> URLRequest {
        let schemes = ["ws": "ws", "wss": "wss", "http": "ws", "https": "wss"]
        func invalid(_ reason: String) -> TransportError {
            // Hides a user name and password.
            let shown = address.lastIndex(of: "@").map { "…\(address[$0...])" } ?? address
            return TransportError(.addressInvalid, "'\(shown)' is not a server URL (wss://host/path): \(reason)")
        }
        guard var parts = URLComponents(string: address),
            let scheme = parts.scheme.flatMap({ schemes[$0.lowercased()] })
        else { throw invalid("the scheme must be ws, wss, http or https") }
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
