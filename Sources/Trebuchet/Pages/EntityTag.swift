internal import WebSockets

/// Names of versions of pages, by which a browser asks whether it has the newest (RFC 9110 §8.8.3, §13.1.2). Pure.
enum EntityTag {
    /// Whether `If-None-Match` of a request names that tag; compared without regard to `W/`.
    static func isKnown(_ tag: String, to headers: HTTPHeaders) -> Bool {
        let wanted = opaque(tag[...])
        return headers.values("If-None-Match").contains { line in
            // A comma may stand inside of a tag; of those that are made here none has one.
            line.split(separator: ",").contains { element in
                let text = element.drop { $0 == " " || $0 == "\t" }
                let end = text.lastIndex { $0 != " " && $0 != "\t" }.map { text.index(after: $0) } ?? text.endIndex
                let one = text[..<end]
                return one == "*" || opaque(one) == wanted
            }
        }
    }

    private static func opaque(_ tag: Substring) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
}
