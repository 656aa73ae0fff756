internal import Networking

/// A client's side of the upgrade (RFC 6455 §4.1). Pure.
struct ClientHandshake {
    let url: WebSocketURL
    let subprotocols: [String]
    let headers: HTTPHeaders
    let key: String

    init(url: WebSocketURL, subprotocols: [String], headers: HTTPHeaders, key: String = HandshakeKey.random()) {
        self.url = url
        self.subprotocols = subprotocols
        self.headers = headers
        self.key = key
    }

    /// The bytes of the request. Throws when a header of the caller's is not one.
    func request() throws(TransportError) -> [UInt8] {
        var text = "GET \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nUpgrade: websocket\r\n"
        text += "Connection: Upgrade\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n"
        if !subprotocols.isEmpty {
            text += "Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))\r\n"
        }
        guard subprotocols.allSatisfy({ HTTPHeadParser.isToken($0.utf8) }) else {
            throw TransportError(.handshake, "subprotocols \(subprotocols) are not HTTP tokens")
        }
        guard Set(subprotocols).count == subprotocols.count else {
            throw TransportError(.handshake, "subprotocols \(subprotocols) name one twice")
        }
        for field in headers.fields {
            guard HTTPHeadParser.isToken(field.name.utf8), field.value.utf8.allSatisfy(HTTPHeadParser.isFieldByte)
            else {
                throw TransportError(.handshake, "header '\(field.name)' has characters that HTTP does not allow")
            }
            text += "\(field.name): \(field.value)\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// Checks the answer; gives the subprotocol that the server chose.
    func validate(_ response: HTTPResponseHead) throws(TransportError) -> String? {
        guard response.status == 101 else {
            let location = response.headers["Location"].map { " (to \($0); redirects are not followed)" } ?? ""
            throw TransportError(.handshake, "\(url) answered \(response.status) instead of 101\(location)")
        }
        guard response.headers.list("Upgrade", contains: "websocket"),
            response.headers.list("Connection", contains: "upgrade")
        else { throw TransportError(.handshake, "\(url) did not upgrade to websocket") }
        guard response.headers.values("Sec-WebSocket-Accept") == [HandshakeKey.accept(for: key)] else {
            throw TransportError(.handshake, "\(url) answered with a wrong Sec-WebSocket-Accept")
        }
        let extensions = response.headers.list("Sec-WebSocket-Extensions")
        guard extensions.isEmpty else {
            throw TransportError(.handshake, "\(url) chose extensions that were not offered: \(extensions)")
        }
        let chosen = response.headers.values("Sec-WebSocket-Protocol")
        guard let subprotocol = chosen.first else { return nil }
        guard chosen.count == 1, subprotocols.contains(subprotocol) else {
            throw TransportError(.handshake, "\(url) chose a subprotocol that was not offered: \(chosen)")
        }
        return subprotocol
    }
}
