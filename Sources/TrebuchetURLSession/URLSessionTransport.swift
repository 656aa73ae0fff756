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
    ///   - address: `wss://example.com`, or `ws://` for one without TLS; a port and a path may follow. One that is no such address is
    ///     told of when the client connects, with `addressInvalid`.
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
        guard let url = URL(string: address), let scheme = url.scheme, ["ws", "wss"].contains(scheme), url.host != nil
        else {
            throw TransportError(
                .addressInvalid, "'\(address)' is no address of a server: it begins with wss:// or ws://")
        }
        var request = URLRequest(url: url)
        request.timeoutInterval = timeout / .seconds(1)
        for field in headers.fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
        request.setValue(subprotocol, forHTTPHeaderField: "Sec-WebSocket-Protocol")
        return request
    }
}
