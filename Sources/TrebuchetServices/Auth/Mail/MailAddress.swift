/// A mail address as codes are sent to, in lower case: letters, digits and `. _ + -` before the `@`, a plain domain behind it.
///
/// That is less than RFC 5321 §4.1.2 allows: mail programs and shells take other signs for pipes (`|`), files (`/`), routes
/// (`%`, `!`), variables (`$`) or quotes. At most 254 bytes.
package struct MailAddress: Hashable, Sendable {
    package let text: String

    /// - Parameter text: spaces and invisible characters around it are left out: fields of forms and pasted text have them.
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

    /// Stands for all addresses that reach one mailbox with most providers: without what follows a plus, and without dots, in front
    /// of the `@`.
    var mailbox: String {
        let parts = text.split(separator: "@")
        return parts[0].prefix { $0 != "+" }.filter { $0 != "." } + "@" + parts[1]
    }

    /// Whether codes can be sent to this address, or from it.
    package static func isValid(_ text: String) -> Bool { (try? MailAddress(text)) != nil }

    /// In parts between single dots. The first sign is no dash, which some programs take for an option, and no plus.
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
