internal import Networking
internal import WebSockets

/// Which web pages may use a server. Pure.
///
/// A browser lets any page open a WebSocket to any server, this machine's too, and sends cookies and certificates of its
/// user with it; but it says in `Origin` where the page came from. So this is asked before anything else.
struct OriginRule: Sendable {
    private enum Pages: Sendable {
        case any
        case listed(Set<WebOrigin>)
        /// Those that come from the host and port that the request goes to.
        case own
    }

    private let pages: Pages

    /// - Parameter origins: those of `AccessPolicy.origins`.
    init(_ origins: Set<String>?) throws(TransportError) {
        guard let origins else {
            pages = .own
            return
        }
        guard !origins.contains("*") else {
            pages = .any
            return
        }
        var listed: Set<WebOrigin> = []
        for text in origins {
            guard let origin = WebOrigin(text) else {
                throw TransportError(
                    .addressInvalid,
                    "'\(text)' in AccessPolicy.origins is no origin; write scheme://host or scheme://host:port, without a "
                        + "path, or * for all")
            }
            listed.insert(origin)
        }
        pages = .listed(listed)
    }

    /// The answer to a request that may not go on; nil for one that may.
    func refusal(of request: HTTPRequestHead, at localAddress: SocketAddress?) -> HTTPResponse? {
        if case .any = pages { return nil }
        let origins = request.headers.values("Origin")
        guard origins.count <= 1 else {
            return Self.forbidden("more than one Origin: where the page is from is not known")
        }
        guard let text = origins.first else { return refusalWithoutOrigin(request, localAddress) }
        let origin = WebOrigin(text)
        switch pages {
        case .any: return nil
        case .listed(let listed):
            if let origin, listed.contains(origin) { return nil }
            return Self.forbidden("pages of origin '\(Self.printable(text))' are not let in; \(Self.hint(origin))")
        case .own:
            let given = request.headers["Host"] ?? ""
            let host = HostAndPort(given)
            if let refusal = Self.rebinding(host, given, localAddress) { return refusal }
            if let origin, let host, origin.isOwn(of: host) { return nil }
            return Self.forbidden(
                "pages of origin '\(Self.printable(text))' are not let in, only those of '\(Self.printable(given))' itself; "
                    + Self.hint(origin))
        }
    }

    /// Programs send no `Origin`. A browser sends none with a plain GET of a page's own host, whatever address that name
    /// leads to now.
    private func refusalWithoutOrigin(_ request: HTTPRequestHead, _ localAddress: SocketAddress?) -> HTTPResponse? {
        guard case .own = pages, !request.wantsWebSocket, let given = request.headers["Host"] else { return nil }
        return Self.rebinding(HostAndPort(given), given, localAddress)
    }

    /// Somebody's name that leads to this machine makes his pages look like ours; names of this machine alone do not.
    private static func rebinding(_ host: HostAndPort?, _ given: String, _ localAddress: SocketAddress?)
        -> HTTPResponse?
    {
        guard let localAddress, HostAndPort("\(localAddress)")?.isLoopback == true, host?.isLoopback != true else {
            return nil
        }
        return forbidden(
            "host '\(printable(given))' is no name of this machine; use localhost or 127.0.0.1, or behind a proxy name the "
                + "origins of pages that may come: AccessPolicy.origins, or serve --origins")
    }

    private static func hint(_ origin: WebOrigin?) -> String {
        guard let origin else {
            return
                "what has no origin, as a page from a file, is let in with all others: AccessPolicy.origins = [\"*\"], or "
                + "serve --origins '*'"
        }
        return "to let them in, name it: AccessPolicy.origins, or serve --origins \(origin)"
    }

    private static func forbidden(_ text: String) -> HTTPResponse { HTTPResponse(status: 403, text: text) }

    /// What a peer sent, for a line of text.
    private static func printable(_ text: String) -> String {
        let bytes = text.utf8.prefix(200).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return String(decoding: bytes, as: UTF8.self)
    }
}
