internal import WebSockets

extension PageSource {
    /// The client library for browsers in the version of this server: `/trebuchet.js`, `/trebuchet-services.js`,
    /// `/trebuchet-exact.js`, `/trebuchet-traces.js`, `/dom.js` and `/svelte.js`. `/trebuchet-services.js` loads
    /// `/trebuchet-rooms.js`, `/trebuchet-writes.js` and `/trebuchet-offline.js` on demand. A page imports the files as
    /// modules, without a build step.
    public static var clientLibrary: PageSource {
        PageSource(kind: .list(WebFiles.client.compactMap { try? page("/\($0)", $1) }))
    }

    /// The start page of `trebuchet serve` at `/`: a live list and the next steps.
    package static var startPage: PageSource {
        let html = WebFiles.start
        let headers: HTTPHeaders = ["Content-Security-Policy": ContentSecurityPolicy.ofPage(html)]
        let page = MemoryPage(html, type: ContentType.of("index.html".utf8), headers: headers)
        return PageSource(kind: .page(page, path: .root))
    }
}

/// The Content-Security-Policy of a page with inline script and style (CSP level 3). Pure.
enum ContentSecurityPolicy {
    /// Returns a policy that permits the inline script and style by their hashes, modules of the server, and connections.
    static func ofPage(_ html: [UInt8]) -> String {
        "default-src 'none'; script-src 'self' \(hash(html, "script")); style-src \(hash(html, "style")); img-src data:; "
            + "connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }

    /// Returns the hash of the contents of the last element with that name.
    private static func hash(_ html: [UInt8], _ name: String) -> String {
        let text = String(decoding: html, as: UTF8.self)
        let opening = text.ranges(of: "<\(name)").last
        guard let opening, let begin = text[opening.upperBound...].firstIndex(of: ">"),
            let end = text[begin...].firstRange(of: "</\(name)>")
        else { return "'none'" }
        return "'sha256-\(ContentHash.base64(Array(text[text.index(after: begin)..<end.lowerBound].utf8)))'"
    }
}
