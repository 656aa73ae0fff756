internal import WebSockets

extension PageSource {
    /// The client library for browsers in the version of this server: `/trebuchet.js`, `/trebuchet-services.js`,
    /// `/trebuchet-exact.js`, `/trebuchet-traces.js`, `/dom.js` and `/svelte.js`. `/trebuchet-services.js` loads
    /// `/trebuchet-rooms.js`, `/trebuchet-writes.js` and `/trebuchet-offline.js` on demand. A page imports the files as
    /// modules, without a build step.
    public static var clientLibrary: PageSource {
        let files = [
            ("/trebuchet.js", WebFiles.trebuchet), ("/trebuchet-services.js", WebFiles.services),
            ("/trebuchet-rooms.js", WebFiles.rooms), ("/trebuchet-writes.js", WebFiles.writes),
            ("/trebuchet-offline.js", WebFiles.offline),
            ("/trebuchet-exact.js", WebFiles.exact), ("/trebuchet-traces.js", WebFiles.traces),
            ("/dom.js", WebFiles.dom), ("/svelte.js", WebFiles.svelte),
        ]
        return PageSource(
            kind: .list(files.compactMap { $1.utf8CodeUnitCount > 0 ? try? page($0, bytes($1)) : nil }))
    }

    /// The start page of `trebuchet serve` at `/`: a live list and the next steps.
    package static var startPage: PageSource {
        let html = bytes(WebFiles.start)
        let headers: HTTPHeaders = ["Content-Security-Policy": ContentSecurityPolicy.ofPage(html)]
        let page = MemoryPage(html, type: ContentType.of("index.html".utf8), headers: headers)
        return PageSource(kind: .page(page, path: .root))
    }

    private static func bytes(_ text: StaticString) -> [UInt8] { text.withUTF8Buffer { Array($0) } }
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
