public import Transports

/// An HTTP answer; the connection ends after it.
public struct HTTPResponse: Sendable {
    /// The status code (RFC 9110 §15); it is not checked here.
    public var status: Int
    /// Beside `Content-Length` and `Connection`, which are written for you. Values have no line breaks: such a field
    /// is left out.
    public var headers: HTTPHeaders
    /// Follows the head unchanged; its length is the `Content-Length`. Not sent in answer to HEAD.
    public var body: [UInt8]

    /// An answer with no fields of its own and an empty body, unless they are given.
    public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A line of plain text.
    public init(status: Int, text: String) {
        self.init(
            status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: Array((text + "\n").utf8))
    }

    /// The bytes of the whole answer, or of its head alone for a HEAD request.
    ///
    /// - Parameters:
    ///   - length: bytes of the whole body, when more of it follows than is here.
    ///   - goesOn: whether the connection does.
    func encoded(headOnly: Bool = false, length: Int? = nil, goesOn: Bool = false) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(Self.phrase(status))\r\n"
        for field in headers.fields where Self.isSafe(field) { text += "\(field.name): \(field.value)\r\n" }
        // A 101 goes on as a WebSocket; it has no body and no end. A 304 has the length of what is not sent, or none.
        if status != 101, status != 304 { text += "Content-Length: \(length ?? body.count)\r\n" }
        if status != 101, !goesOn { text += "Connection: close\r\n" }
        text += "\r\n"
        return Array(text.utf8) + (headOnly ? [] : body)
    }

    /// A value with a line break would let whoever supplied it write fields of his own.
    private static func isSafe(_ field: HTTPHeaders.Field) -> Bool {
        HTTPHeadParser.isToken(field.name.utf8) && field.value.utf8.allSatisfy(HTTPHeadParser.isFieldByte)
    }

    static func phrase(_ status: Int) -> String {
        switch status {
        case 101: "Switching Protocols"
        case 200: "OK"
        case 204: "No Content"
        case 301: "Moved Permanently"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}
