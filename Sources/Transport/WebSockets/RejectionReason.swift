internal import Bytes
internal import Transports

/// The reason that a server states when it rejects a connection.
enum RejectionReason {
    /// The maximum length of the displayed reason, in bytes.
    static let longest = 200

    /// Returns whether the relevant part of the body has arrived.
    static func isComplete(_ headers: HTTPHeaders, _ body: UnsafeRawBufferPointer) -> Bool {
        guard isText(headers), body.count < longest, !body.contains(0x0A) else { return true }
        return headers["Content-Length"].flatMap { Int($0) }.map { body.count >= $0 } ?? false
    }

    /// Returns the first line of a plain-text body, without terminal control characters; nil without one.
    static func text(_ headers: HTTPHeaders, _ body: UnsafeRawBufferPointer) -> String? {
        guard isText(headers) else { return nil }
        let line = String(decoding: body.prefix(longest).prefix { $0 != 0x0A }, as: UTF8.self)
        var text = ""
        for scalar in line.unicodeScalars {
            // The last scalar may be truncated.
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

    /// Returns whether the body is plain text; the first line of a proxy's HTML page has no reason.
    private static func isText(_ headers: HTTPHeaders) -> Bool {
        headers["Content-Type"].map { $0.lowercased().hasPrefix("text/plain") } ?? true
    }
}
