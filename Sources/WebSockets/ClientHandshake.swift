internal import Networking
internal import Transports

/// A client's side of the upgrade (RFC 6455 §4.1). Pure.
struct ClientHandshake {
    let url: WebSocketURL
    let subprotocols: [String]
    let headers: HTTPHeaders
    let compression: WebSocketCompression?
    let key: String

    /// What the server answered.
    struct Agreement: Equatable {
        var subprotocol: String?
        var compression: CompressionAgreement?
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

    /// The bytes of the request. Throws when a header of the caller's is not one.
    func request() throws(TransportError) -> [UInt8] {
        var text = "GET \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nUpgrade: websocket\r\n"
        text += "Connection: Upgrade\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n"
        if !subprotocols.isEmpty {
            text += "Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))\r\n"
        }
        if let compression { text += "Sec-WebSocket-Extensions: \(CompressionAgreement.offer(compression))\r\n" }
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
            guard !Self.isOwn(field.name) else {
                throw TransportError(
                    .handshake, "header '\(field.name)' is part of the handshake, which writes it itself")
            }
            text += "\(field.name): \(field.value)\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// Whether a field is what makes the request one for a WebSocket.
    private static func isOwn(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["host", "upgrade", "connection"].contains(name) || name.hasPrefix("sec-websocket-")
    }

    /// What an answer other than 101 means.
    ///
    /// - Parameter body: as much of it as has come.
    func refusal(_ response: HTTPResponseHead, body: UnsafeRawBufferPointer) -> TransportError {
        var text = "\(url) answered \(response.status) instead of 101"
        if let location = response.headers["Location"] { text += " (to \(location); redirects are not followed)" }
        if let reason = RefusalReason.text(response.headers, body) { text += ": \(reason)" }
        return TransportError(.handshake, text, cause: UnexpectedStatus(response.status))
    }

    /// Checks the answer; gives what the server chose.
    func validate(_ response: HTTPResponseHead) throws(TransportError) -> Agreement {
        guard response.status == 101 else {
            throw refusal(response, body: UnsafeRawBufferPointer(start: nil, count: 0))
        }
        guard response.headers.list("Upgrade", contains: "websocket"),
            response.headers.list("Connection", contains: "upgrade")
        else { throw TransportError(.handshake, "\(url) did not upgrade to websocket") }
        guard response.headers.values("Sec-WebSocket-Accept") == [HandshakeKey.accept(for: key)] else {
            throw TransportError(.handshake, "\(url) answered with a wrong Sec-WebSocket-Accept")
        }
        var agreement = Agreement()
        if let chosen = response.headers.list("Sec-WebSocket-Extensions").first {
            guard let extensions = WebSocketExtension.list(response.headers), extensions.count == 1, let compression,
                let agreed = CompressionAgreement(answer: extensions[0], to: compression)
            else { throw TransportError(.handshake, "\(url) chose extensions that were not offered so: \(chosen)") }
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

    // MARK: TLS on one side alone

    /// Whether an answer is an alert of TLS, from a server that did not expect plain text.
    func isTLS(_ answer: UnsafeRawBufferPointer) -> Bool { answer.count >= 2 && answer[0] == 0x15 && answer[1] == 0x03 }

    var needsTLS: TransportError {
        TransportError(.handshake, "\(url) speaks TLS at that port: connect with TLS (wss:)")
    }

    var endedEarly: TransportError {
        let hint =
            url.isSecure ? "" : "; if the server speaks TLS at that port, connect with TLS (wss:)"
        return TransportError(.closed, "\(url) ended the connection before it answered the upgrade\(hint)")
    }
}
