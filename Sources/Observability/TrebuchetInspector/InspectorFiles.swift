internal import CInspectorFiles
internal import Trebuchet
internal import WebSockets

/// The static files of the inspector page.
struct InspectorFiles: Sendable {
    private var files: [String: StreamedResponse]

    init() {
        let page = inspectorPage()
        files = [
            "/": Self.response("text/html", Self.bytes(page.html)),
            "/inspector.css": Self.response("text/css", Self.bytes(page.style)),
            "/inspector.js": Self.response("text/javascript", Self.bytes(page.script)),
        ]
        files["/trebuchet.js"] = WebFiles.client["trebuchet.js"].map { Self.response("text/javascript", $0) }
    }

    subscript(path: String) -> StreamedResponse? { files[path] }

    private static func bytes(_ file: InspectorFile) -> [UInt8] {
        Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
    }

    private static func response(_ type: String, _ body: [UInt8]) -> StreamedResponse {
        let headers: HTTPHeaders = ["Content-Type": "\(type); charset=utf-8", "Content-Security-Policy": policy]
        return StreamedResponse(HTTPResponse(status: 200, headers: headers), body: body)
    }

    /// A policy that permits scripts, styles and connections of this server only, and nothing inline.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}
