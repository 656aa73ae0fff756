internal import Transports

/// The server side of the upgrade (RFC 6455 §4.2). It does no I/O: a request in, a response out.
package enum ServerHandshake {
    /// The response to a client that sends plain HTTP to a TLS server.
    static let needsTLS = HTTPResponse(
        status: 400, text: "this port requires TLS: connect with wss: or https:"
    ).encoded()

    /// The result of a valid upgrade request.
    package struct Negotiated: Equatable, Sendable {
        package let acceptKey: String
        /// The first of the server's subprotocols that the client offers; nil if it offers none of them.
        package let subprotocol: String?
        package let compression: NegotiatedCompression?

        /// The response that starts the WebSocket.
        package var response: HTTPResponse {
            var headers: HTTPHeaders = [
                "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": acceptKey,
            ]
            if let compression { headers.add("Sec-WebSocket-Extensions", compression.description) }
            if let subprotocol { headers.add("Sec-WebSocket-Protocol", subprotocol) }
            return HTTPResponse(status: 101, headers: headers)
        }
    }

    /// Validates the upgrade request. `subprotocols` are the server's, in its order of preference.
    package static func negotiate(
        _ request: HTTPRequestHead, subprotocols: [String], compression: WebSocketCompression? = nil
    ) throws(HTTPRejection) -> Negotiated {
        guard request.method == "GET" else {
            throw HTTPRejection(405, "a WebSocket upgrade requires GET", headers: ["Allow": "GET"])
        }
        let headers = request.headers
        guard headers.list("Upgrade", contains: "websocket") else { throw upgradeRequired }
        guard request.minorVersion >= 1 else { throw HTTPRejection(400, "an upgrade requires HTTP/1.1") }
        guard headers.list("Connection", contains: "upgrade") else {
            throw HTTPRejection(400, "Connection does not contain Upgrade")
        }
        let versions = headers.values("Sec-WebSocket-Version")
        guard versions.count == 1 else { throw HTTPRejection(400, "Sec-WebSocket-Version must be given exactly once") }
        guard versions[0] == "13" else { throw upgradeRequired }
        let keys = headers.values("Sec-WebSocket-Key")
        guard keys.count == 1, HandshakeKey.isValid(keys[0]) else {
            throw HTTPRejection(400, "Sec-WebSocket-Key is not 16 bytes in base64")
        }
        let offered = headers.list("Sec-WebSocket-Protocol")
        guard offered.allSatisfy({ HTTPHeadParser.isToken($0.utf8) }) else {
            throw HTTPRejection(400, "Sec-WebSocket-Protocol is not a list of tokens")
        }
        guard let extensions = WebSocketExtension.list(headers) else {
            throw HTTPRejection(400, "Sec-WebSocket-Extensions is not a list of extensions")
        }
        return Negotiated(
            acceptKey: HandshakeKey.accept(for: keys[0]), subprotocol: subprotocols.first { offered.contains($0) },
            compression: compression.flatMap { NegotiatedCompression.answer(extensions, $0) })
    }

    /// The rejection of a plain request, or of an unsupported protocol version (§4.2.2).
    package static var upgradeRequired: HTTPRejection {
        HTTPRejection(
            426, "this is a WebSocket endpoint, version 13",
            headers: ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"])
    }
}
