internal import Bytes
internal import Transports

/// The line in which a server says why it refuses a connection.
enum RefusalReason {
    /// The most of it that is shown, in bytes.
    static let longest = 200

    /// Whether all that counts of the body is there.
    static func isWhole(_ headers: HTTPHeaders, _ body: UnsafeRawBufferPointer) -> Bool {
        guard isText(headers), body.count < longest, !body.contains(0x0A) else { return true }
        return headers["Content-Length"].flatMap { Int($0) }.map { body.count >= $0 } ?? false
    }

    /// The first line of a body of plain text, without what would do something to a terminal; nil when there is none.
    static func text(_ headers: HTTPHeaders, _ body: UnsafeRawBufferPointer) -> String? {
        guard isText(headers) else { return nil }
        let line = String(decoding: body.prefix(longest).prefix { $0 != 0x0A }, as: UTF8.self)
        var text = ""
        for scalar in line.unicodeScalars {
            // The last one may have been cut in two.
            guard isPrintable(scalar) else { continue }
            text.unicodeScalars.append(scalar)
        }
        while text.utf8.count > longest { text.unicodeScalars.removeLast() }
        let trimmed = text[...].trimmingSpaces
        return trimmed.isEmpty ? nil : String(trimmed)
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: scalar != "\u{FFFD}"
        }
    }

    /// A page of a proxy says nothing in its first line.
    private static func isText(_ headers: HTTPHeaders) -> Bool {
        headers["Content-Type"].map { $0.lowercased().hasPrefix("text/plain") } ?? true
    }
}
