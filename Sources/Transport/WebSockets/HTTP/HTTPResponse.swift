public import Transports

/// An HTTP response; the connection ends after it.
public struct HTTPResponse: Sendable {
    /// The status code (RFC 9110 §15), not validated.
    public var status: Int
    /// The fields, without `Content-Length` and `Connection`, which are added. A field with a line break in its value is omitted.
    public var headers: HTTPHeaders
    /// The body, sent unchanged; its size becomes the `Content-Length`. It is not sent in response to HEAD.
    public var body: [UInt8]
    /// Writes a body of unknown length piece by piece, in place of `body`. `write` returns when the next piece may follow.
    package var chunks: (@Sendable (_ write: @Sendable ([UInt8]) async throws -> Void) async throws -> Void)?

    /// Creates a response, by default without fields and with an empty body.
    public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Creates a response with a line of plain text.
    public init(status: Int, text: String) {
        self.init(
            status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: Array((text + "\n").utf8))
    }

    /// Returns the bytes of the response, or of its head for a HEAD request.
    ///
    /// - Parameters:
    ///   - length: the size of the whole body, if more of it follows.
    ///   - keepsAlive: whether the connection stays open.
    ///   - framing: the end of the body.
    func encoded(
        headOnly: Bool = false, length: Int? = nil, keepsAlive: Bool = false, framing: BodyFraming = .length
    ) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(Self.phrase(status))\r\n"
        for field in headers.fields where Self.isSafe(field) { text += "\(field.name): \(field.value)\r\n" }
        // A 101 continues as a WebSocket; it has no body and no end. A 204 has no body (RFC 9110 §8.6). A 304 has the length of the
        // body that is not sent, or none.
        switch framing {
        case .length where ![101, 204, 304].contains(status): text += "Content-Length: \(length ?? body.count)\r\n"
        case .chunked: text += "Transfer-Encoding: chunked\r\n"
        case .length, .close: break
        }
        if status != 101, !keepsAlive { text += "Connection: close\r\n" }
        text += "\r\n"
        return Array(text.utf8) + (headOnly || status == 204 ? [] : body)
    }

    /// The way in which a client finds the end of a body (RFC 9112 §6.3).
    enum BodyFraming {
        case length, chunked
        /// The end of the connection.
        case close
    }

    /// Returns whether a field is safe: a line break in its value would let the author of the value inject fields.
    private static func isSafe(_ field: HTTPHeaders.Field) -> Bool {
        HTTPHeadParser.isToken(field.name.utf8) && field.value.utf8.allSatisfy(HTTPHeadParser.isFieldByte)
    }

    package static func phrase(_ status: Int) -> String {
        switch status {
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}

extension HTTPHeaders {
    /// Adds fields, in place of those of the same names. `Vary` is a list, to which the value is added.
    package mutating func replace(with fields: HTTPHeaders) {
        for field in fields.fields {
            if !Self.equal(field.name, "Vary") { remove(field.name) }
            add(field.name, field.value)
        }
    }

    /// Returns whether a text is a token, such as the name of a field or a method (RFC 9110 §5.6.2).
    package static func isName(_ text: String) -> Bool { HTTPHeadParser.isToken(text.utf8) }
}
