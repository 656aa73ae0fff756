internal import WebSockets

/// Entity tags, with which a browser checks whether its copy of a page is current (RFC 9110 §8.8.3, §13.1.2). Pure.
enum EntityTag {
    /// Returns whether `If-None-Match` of a request contains the tag; `W/` is ignored (weak comparison).
    static func isKnown(_ tag: String, to headers: HTTPHeaders) -> Bool {
        let wanted = opaque(tag[...])
        return headers.values("If-None-Match").contains { line in
            // A tag may contain a comma; the tags of this server do not.
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
