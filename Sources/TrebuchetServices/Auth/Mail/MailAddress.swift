/// A mail address as codes are sent to, in lower case: the plain form of RFC 5321 §4.1.2, without quotes and comments.
///
/// What could end a line, a header or an argument, or begin another one, is in none. At most 254 bytes.
package struct MailAddress: Hashable, Sendable {
    package let text: String

    package init(_ text: String) throws(AuthError) {
        let bytes = Array(text.utf8)
        guard bytes.count <= 254, let at = bytes.lastIndex(of: UInt8(ascii: "@")),
            Self.isLocalPart(bytes[..<at]), Self.isDomain(bytes[(at + 1)...])
        else { throw .invalidAddress }
        self.text = text.lowercased()
    }

    /// Whether codes can be sent to this address, or from it.
    package static func isValid(_ text: String) -> Bool { (try? MailAddress(text)) != nil }

    /// Letters, digits and some signs, in parts between single dots. The first is no dash: some programs take that for an
    /// option.
    private static func isLocalPart(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard (1...64).contains(bytes.count), bytes.first != UInt8(ascii: "-") else { return false }
        return bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { part in
            !part.isEmpty && part.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-/=?^_`{|}~".utf8.contains($0) }
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
