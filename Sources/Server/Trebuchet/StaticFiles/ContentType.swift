/// Media types by file extension. Pure.
enum ContentType {
    static let unknown = "application/octet-stream"

    /// - Parameter name: the name of the file; the case of its extension is ignored.
    static func of(_ name: some Collection<UInt8>) -> String {
        let name = Array(name)
        // The file has no extension, and iOS accepts no other type.
        if name.elementsEqual("apple-app-site-association".utf8) { return "application/json; charset=utf-8" }
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return unknown }
        switch String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased() {
        case "html", "htm": return "text/html; charset=utf-8"
        case "js", "mjs": return "text/javascript; charset=utf-8"
        case "css": return "text/css; charset=utf-8"
        case "json", "map": return "application/json; charset=utf-8"
        case "webmanifest": return "application/manifest+json; charset=utf-8"
        case "txt", "md": return "text/plain; charset=utf-8"
        case "xml": return "application/xml; charset=utf-8"
        case "svg": return "image/svg+xml; charset=utf-8"
        case "png": return "image/png"
        case "jpg", "jpeg": return "image/jpeg"
        case "gif": return "image/gif"
        case "webp": return "image/webp"
        case "avif": return "image/avif"
        case "ico": return "image/x-icon"
        case "woff2": return "font/woff2"
        case "woff": return "font/woff"
        case "wasm": return "application/wasm"
        case "pdf": return "application/pdf"
        case "mp3": return "audio/mpeg"
        case "mp4": return "video/mp4"
        case "webm": return "video/webm"
        default: return unknown
        }
    }
}
