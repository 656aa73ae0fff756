public import Transports

/// The head of an HTTP request.
public struct HTTPRequestHead: Sendable, Equatable {
    /// The method as sent by the client, case-sensitive: `GET`.
    public let method: String
    /// The target as sent by the client: `/chat?room=1`.
    public let target: String
    /// All fields, in the client's order.
    public let headers: HTTPHeaders
    /// The x of HTTP/1.x.
    package let minorVersion: Int
    /// The framing of the body.
    package private(set) var body = HTTPBodyFraming.empty

    /// The target up to the question mark, still percent-encoded.
    public var path: String { String(target.prefix { $0 != "?" }) }
    /// The target after the question mark, still percent-encoded; nil without one.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// Indicates whether the client requests a WebSocket.
    package var wantsWebSocket: Bool { headers.list("Upgrade", contains: "websocket") }

    /// Parses a complete head, including its empty line.
    ///
    /// - Parameter allowsBody: False to reject a request with a body. An upgrade never has one.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, allowsBody: Bool = false
    ) throws(HTTPRejection) -> HTTPRequestHead {
        let (line, headers) = try HTTPHeadParser.parse(bytes)
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw HTTPRejection(400, "request line is not method, target and version") }
        guard HTTPHeadParser.isToken(parts[0].utf8) else { throw HTTPRejection(400, "method is not a token") }
        let minorVersion = try HTTPHeadParser.minorVersion(parts[2])
        let target = try originForm(parts[1])
        try checkHost(headers, minorVersion)
        let body = try framing(headers, minorVersion)
        let isUpgrade = headers.list("Upgrade", contains: "websocket")
        guard body == .empty || allowsBody && !isUpgrade else {
            throw isUpgrade ? HTTPRejection(400, "an upgrade has no body") : bodyNotAccepted
        }
        return HTTPRequestHead(
            method: String(parts[0]), target: target, headers: headers, minorVersion: minorVersion, body: body)
    }

    /// Returns the target as `/path?query`, also for `http://host/path`, which every server must accept (RFC 9112 §3.2).
    private static func originForm(_ target: Substring) throws(HTTPRejection) -> String {
        guard !target.isEmpty, target.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }) else {
            throw HTTPRejection(400, "request target has characters that must be percent-encoded")
        }
        if target.hasPrefix("/") || target == "*" { return String(target) }
        for scheme in ["http://", "https://", "ws://", "wss://"] where target.hasPrefix(scheme) {
            let rest = target.dropFirst(scheme.count)
            guard let path = rest.firstIndex(where: { $0 == "/" || $0 == "?" }) else { return "/" }
            return rest[path] == "/" ? String(rest[path...]) : "/" + rest[path...]
        }
        throw HTTPRejection(400, "request target is not a path")
    }

    /// Requires exactly one valid `Host` field (RFC 9112 §3.2).
    private static func checkHost(_ headers: HTTPHeaders, _ minorVersion: Int) throws(HTTPRejection) {
        let hosts = headers.values("Host")
        guard hosts.count <= 1 else { throw HTTPRejection(400, "more than one Host") }
        guard let host = hosts.first else {
            if minorVersion == 0 { return }
            throw HTTPRejection(400, "no Host")
        }
        let forbidden = Array(" \t,/?#@\\".utf8)
        guard !host.utf8.contains(where: { forbidden.contains($0) || $0 >= 0x80 }) else {
            throw HTTPRejection(400, "Host is not a host")
        }
    }

    /// Returns the framing of the body. Rejects ambiguous lengths, which enable request smuggling (RFC 9112 §6). A length of 0 means
    /// no body; some clients send it with each request. Several equal lengths count as one (RFC 9110 §8.6).
    private static func framing(
        _ headers: HTTPHeaders, _ minorVersion: Int
    ) throws(HTTPRejection) -> HTTPBodyFraming {
        let lengths = headers.values("Content-Length").flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(trimmed)
        }
        let hasCoding = headers["Transfer-Encoding"] != nil
        guard let length = lengths.first else { return hasCoding ? try coding(headers, minorVersion) : .empty }
        guard !hasCoding, lengths.allSatisfy({ $0 == length }) else {
            throw HTTPRejection(400, "the body length is given twice")
        }
        guard !length.isEmpty, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw HTTPRejection(400, "Content-Length is not a number")
        }
        // A number beyond any limit is one of them.
        let count = Int(length) ?? .max
        return count == 0 ? .empty : .length(count)
    }

    private static func coding(_ headers: HTTPHeaders, _ minorVersion: Int) throws(HTTPRejection) -> HTTPBodyFraming {
        guard minorVersion >= 1 else { throw HTTPRejection(400, "Transfer-Encoding requires HTTP/1.1") }
        let codings = headers.list("Transfer-Encoding")
        guard codings.count == 1, HTTPHeaders.equal(codings[0], "chunked") else {
            throw HTTPRejection(501, "the only supported Transfer-Encoding is chunked")
        }
        return .chunked
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let text = text.drop(while: isSpace)
        return text[..<(text.lastIndex { !isSpace($0) }.map(text.index(after:)) ?? text.startIndex)]
    }

    /// The rejection of a body.
    static var bodyNotAccepted: HTTPRejection { HTTPRejection(413, "a request body is not accepted") }
}

extension HTTPRequestHead {
    /// Creates the head of a `GET` request as if parsed from a client.
    package init(target: String, headers: HTTPHeaders) {
        self.init(method: "GET", target: target, headers: headers, minorVersion: 1)
    }
}
