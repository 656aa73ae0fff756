internal import Networking
internal import WebSockets

/// Decides which web pages may use a server. Pure.
///
/// A browser lets any page open a WebSocket to any server, including loopback, and sends the user's cookies and certificates
/// with it. It sends the origin of the page in `Origin`, so this check runs before all others.
struct OriginRule: Sendable {
    /// The origins whose pages are accepted.
    private enum AllowedOrigins: Sendable {
        case any
        case listed(Set<WebOrigin>)
        /// The host and port that the request is sent to.
        case own
    }

    private let pages: AllowedOrigins

    /// - Parameter origins: the value of `AccessPolicy.origins`.
    init(_ origins: Set<String>?) throws(TransportError) {
        guard let origins else {
            pages = .own
            return
        }
        guard !origins.contains("*") else {
            pages = .any
            return
        }
        pages = .listed(try WebOrigin.list(origins, setting: "AccessPolicy.origins", also: ", or * for all"))
    }

    /// Returns the rejection of a request; nil if it is accepted.
    func refusal(of request: HTTPRequestHead, at localAddress: SocketAddress?) -> HTTPResponse? {
        if case .any = pages { return nil }
        let origins = request.headers.values("Origin")
        guard origins.count <= 1 else {
            return Self.forbidden("the request has more than one Origin header")
        }
        guard let text = origins.first else { return refusalWithoutOrigin(request, localAddress) }
        let origin = WebOrigin(text)
        switch pages {
        case .any: return nil
        case .listed(let listed):
            if let origin, listed.contains(origin) { return nil }
            return Self.forbidden("origin '\(Self.printable(text))' is not allowed; \(Self.hint(origin))")
        case .own:
            let requestedHost = request.headers["Host"] ?? ""
            let host = HostAndPort(requestedHost)
            if let refusal = Self.rejectRebinding(host, requestedHost, localAddress) { return refusal }
            if let origin, let host, origin.isOwn(of: host) { return nil }
            return Self.forbidden(
                "origin '\(Self.printable(text))' is not allowed, only the server's own origin '\(Self.printable(requestedHost))'; "
                    + Self.hint(origin))
        }
    }

    /// Checks a request without `Origin`. Programs send none, and a browser sends none with a plain GET to the page's host,
    /// whatever address that name now resolves to.
    private func refusalWithoutOrigin(_ request: HTTPRequestHead, _ localAddress: SocketAddress?) -> HTTPResponse? {
        guard case .own = pages, !request.wantsWebSocket, let requestedHost = request.headers["Host"] else {
            return nil
        }
        return Self.rejectRebinding(HostAndPort(requestedHost), requestedHost, localAddress)
    }

    /// Rejects DNS rebinding: a foreign name that resolves to this machine would make its pages same-origin. Names reserved for
    /// this machine are safe.
    private static func rejectRebinding(_ host: HostAndPort?, _ requestedHost: String, _ localAddress: SocketAddress?)
        -> HTTPResponse?
    {
        guard let localAddress, HostAndPort("\(localAddress)")?.isLoopback == true, host?.isLoopback != true else {
            return nil
        }
        return forbidden(
            "host '\(printable(requestedHost))' is not a name of this machine; use localhost or 127.0.0.1, or behind a proxy list the "
                + "allowed origins: AccessPolicy.origins, or serve --origins")
    }

    private static func hint(_ origin: WebOrigin?) -> String {
        guard let origin else {
            return
                "pages without an origin, such as local files, require all origins: AccessPolicy.origins = [\"*\"], or "
                + "serve --origins '*'"
        }
        return "to allow it, list it: AccessPolicy.origins, or serve --origins \(origin)"
    }

    private static func forbidden(_ text: String) -> HTTPResponse { HTTPResponse(status: 403, text: text) }

    /// Returns text from a peer in printable ASCII.
    private static func printable(_ text: String) -> String {
        let bytes = text.utf8.prefix(200).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return String(decoding: bytes, as: UTF8.self)
    }
}
