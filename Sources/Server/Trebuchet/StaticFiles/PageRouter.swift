internal import Glibc
internal import WebSockets

/// All pages of a server; selects the page of a request.
final class PageRouter: Sendable {
    private let sources: [PageSource]
    let open: OpenFiles

    init(_ sources: [PageSource], _ limits: PageLimits) {
        self.sources = sources.flatMap(\.single)
        open = OpenFiles(limits)
    }

    /// Returns the response to a request; nil if the server has no pages. The first source that has the page answers; files are
    /// looked up off the reactor.
    func answer(_ request: PlainRequest) -> PlainResponse? {
        guard !sources.isEmpty else { return nil }
        let path: PagePath
        do throws(PagePath.InvalidPath) {
            path = try PagePath(request.head.path, showsDotFiles: true)
        } catch {
            return .page(
                error == .malformed
                    ? Self.reply(400, "the path has a percent sign without two hexadecimal digits") : Self.nothing)
        }
        var candidates = sources[...]
        // Sources before the first folder that may have the page are in memory and answer on the reactor.
        while let source = candidates.first {
            switch source.kind {
            case .folder(let folder):
                if folder.below(path) != nil {
                    return .blocking { [candidates, open] in Self.lookUp(path, request, candidates, open) }
                }
            case .page(let page, let pagePath):
                if page.isFor(request), pagePath == path { return .page(page.reply(request)) }
            case .list: break
            }
            candidates.removeFirst()
        }
        return .page(Self.nothing)
    }

    private static func lookUp(
        _ path: PagePath, _ request: PlainRequest, _ sources: ArraySlice<PageSource>, _ open: OpenFiles
    ) -> StreamedResponse {
        for source in sources {
            switch source.kind {
            case .folder(let folder):
                guard let below = folder.below(path) else { continue }
                // The folder itself has a trailing slash too; the root always has one.
                if let reply = folder.answer(below, isFolder: path.isFolder, request, open) { return reply }
            case .page(let page, let pagePath):
                if page.isFor(request), pagePath == path { return page.reply(request) }
            case .list: break
            }
        }
        return nothing
    }

    // MARK: Answers

    static var nothing: StreamedResponse { reply(404, "page not found") }

    static func busy(_ reason: String) -> StreamedResponse { reply(503, reason, ["Retry-After": "5"]) }

    static func reply(_ status: Int, _ text: String, _ more: HTTPHeaders = [:]) -> StreamedResponse {
        var headers = headers(type: "text/plain; charset=utf-8")
        for field in more.fields { headers.add(field.name, field.value) }
        return StreamedResponse(HTTPResponse(status: status, headers: headers, body: Array((text + "\n").utf8)))
    }

    /// Returns the header fields that every page has.
    static func headers(type: String) -> HTTPHeaders {
        ["Date": HTTPDate.text(time(nil)), "Content-Type": type, "X-Content-Type-Options": "nosniff"]
    }
}
