internal import Networking
internal import Transports

/// The client side of the upgrade (RFC 6455 §4.1). It does no I/O.
struct ClientHandshake {
    let url: WebSocketURL
    let subprotocols: [String]
    let headers: HTTPHeaders
    let compression: WebSocketCompression?
    let key: String

    /// The parameters that the server chose.
    struct Negotiated: Equatable {
        var subprotocol: String?
        var compression: NegotiatedCompression?
    }

    init(
        url: WebSocketURL, subprotocols: [String], headers: HTTPHeaders, compression: WebSocketCompression? = nil,
        key: String = HandshakeKey.random()
    ) {
        self.compression = compression
        self.url = url
        self.subprotocols = subprotocols
        self.headers = headers
        self.key = key
    }

    /// Returns the bytes of the request. Throws for an invalid header field from the caller.
    func request() throws(TransportError) -> [UInt8] {
        var text = "GET \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nUpgrade: websocket\r\n"
        text += "Connection: Upgrade\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n"
        if !subprotocols.isEmpty {
            text += "Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))\r\n"
        }
        if let compression { text += "Sec-WebSocket-Extensions: \(NegotiatedCompression.offer(compression))\r\n" }
        guard subprotocols.allSatisfy({ HTTPHeadParser.isToken($0.utf8) }) else {
            throw TransportError(.handshake, "subprotocols \(subprotocols) must be HTTP tokens")
        }
        guard Set(subprotocols).count == subprotocols.count else {
            throw TransportError(.handshake, "subprotocols \(subprotocols) contain a duplicate")
        }
        for field in headers.fields {
            guard HTTPHeadParser.isToken(field.name.utf8), field.value.utf8.allSatisfy(HTTPHeadParser.isFieldByte)
            else {
                throw TransportError(.handshake, "header '\(field.name)' contains characters that are invalid in HTTP")
            }
            guard !Self.isOwn(field.name) else {
                throw TransportError(
                    .handshake, "header '\(field.name)' is reserved for the handshake")
            }
            text += "\(field.name): \(field.value)\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// Returns whether the handshake sets the field itself.
    private static func isOwn(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["host", "upgrade", "connection"].contains(name) || name.hasPrefix("sec-websocket-")
    }

    /// Returns the error for a response other than 101.
    ///
    /// - Parameter body: the received part of the body.
    func refusal(_ response: HTTPResponseHead, body: UnsafeRawBufferPointer) -> TransportError {
        var text = "\(url) responded with \(response.status) instead of 101"
        if let location = response.headers["Location"] { text += " (to \(location); redirects are not followed)" }
        if let reason = RejectionReason.text(response.headers, body) { text += ": \(reason)" }
        return TransportError(.handshake, text, cause: UnexpectedHTTPStatus(response.status))
    }

    /// Validates the response and returns the parameters that the server chose.
    func validate(_ response: HTTPResponseHead) throws(TransportError) -> Negotiated {
        guard response.status == 101 else {
            throw refusal(response, body: UnsafeRawBufferPointer(start: nil, count: 0))
        }
        guard response.headers.list("Upgrade", contains: "websocket"),
            response.headers.list("Connection", contains: "upgrade")
        else { throw TransportError(.handshake, "\(url) did not upgrade to websocket") }
        guard response.headers.values("Sec-WebSocket-Accept") == [HandshakeKey.accept(for: key)] else {
            throw TransportError(.handshake, "\(url) responded with a wrong Sec-WebSocket-Accept")
        }
        var agreement = Negotiated()
        if let chosen = response.headers.list("Sec-WebSocket-Extensions").first {
            guard let extensions = WebSocketExtension.list(response.headers), extensions.count == 1, let compression,
                let agreed = NegotiatedCompression(answer: extensions[0], to: compression)
            else {
                throw TransportError(
                    .handshake, "\(url) chose extensions that were not offered in this form: \(chosen)")
            }
            agreement.compression = agreed
        }
        let chosen = response.headers.values("Sec-WebSocket-Protocol")
        guard let subprotocol = chosen.first else { return agreement }
        guard chosen.count == 1, subprotocols.contains(subprotocol) else {
            throw TransportError(.handshake, "\(url) chose a subprotocol that was not offered: \(chosen)")
        }
        agreement.subprotocol = subprotocol
        return agreement
    }

    // MARK: TLS mismatch

    /// Returns whether the response is a TLS alert, from a server that did not expect plain text.
    func isTLS(_ answer: UnsafeRawBufferPointer) -> Bool { answer.count >= 2 && answer[0] == 0x15 && answer[1] == 0x03 }

    var needsTLS: TransportError {
        TransportError(.handshake, "\(url) requires TLS at this port: connect with wss:")
    }

    var endedEarly: TransportError {
        let hint =
            url.isSecure ? "" : "; if the server requires TLS at this port, connect with wss:"
        return TransportError(.closed, "\(url) closed the connection before its response to the upgrade\(hint)")
    }
}
