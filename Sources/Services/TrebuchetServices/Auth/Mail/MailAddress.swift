/// A mail address for codes, in lower case: letters, digits and `. _ + -` before the `@`, and a plain domain after it.
///
/// RFC 5321 §4.1.2 allows more: mail programs and shells interpret other characters as pipes (`|`), files (`/`), routes (`%`,
/// `!`), variables (`$`) or quotes. At most 254 bytes.
package struct MailAddress: Hashable, Sendable {
    package let text: String

    /// - Parameter text: the address. Spaces and invisible characters around it are removed, because form fields and pasted
    ///   text contain them.
    package init(_ text: String) throws(AuthError) {
        guard text.utf8.count <= 1_024 else { throw .invalidAddress }
        let scalars = text.unicodeScalars
        let rest = scalars.drop(while: \.isBlank)
        let end = rest.lastIndex { !$0.isBlank }.map { scalars.index(after: $0) } ?? rest.startIndex
        let text = String(rest[..<end])
        let bytes = Array(text.utf8)
        guard bytes.count <= 254, let at = bytes.lastIndex(of: UInt8(ascii: "@")),
            Self.isLocalPart(bytes[..<at]), Self.isDomain(bytes[(at + 1)...])
        else { throw .invalidAddress }
        self.text = text.lowercased()
    }

    /// A common form of all addresses that most providers deliver to one mailbox: without the part from a plus and without dots
    /// before the `@`.
    var mailbox: String {
        let parts = text.split(separator: "@")
        return parts[0].prefix { $0 != "+" }.filter { $0 != "." } + "@" + parts[1]
    }

    /// Returns whether the text is a valid address to send codes to or from.
    package static func isValid(_ text: String) -> Bool { (try? MailAddress(text)) != nil }

    /// Checks parts between single dots. The first character is no dash, which some programs take for an option, and no plus.
    private static func isLocalPart(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard (1...64).contains(bytes.count), let first = bytes.first, isLetterOrDigit(first) || first == 0x5F else {
            return false
        }
        return bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { part in
            !part.isEmpty && part.allSatisfy { isLetterOrDigit($0) || "_+-".utf8.contains($0) }
        }
    }

    private static func isDomain(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
                && label.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
        }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }
}
