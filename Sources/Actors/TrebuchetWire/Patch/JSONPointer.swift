/// A path to a value in a JSON text (RFC 6901).
package struct JSONPointer: Hashable, Sendable, CustomStringConvertible {
    /// One step of the path: the name of a member, or the index of an element.
    package struct Token: Hashable, Sendable {
        /// The name in UTF-8, unescaped.
        package let bytes: [UInt8]

        package init(_ name: String) { bytes = Array(name.utf8) }

        init(bytes: [UInt8]) { self.bytes = bytes }

        /// The index, if the token is one: digits without a leading zero.
        package var index: Int? {
            bytes.first == 0x2D ? nil : bytes.withUnsafeBytes { JSONNumber.int($0) }
        }

        /// Whether this is `-`, the position behind the last element.
        package var isEnd: Bool { bytes == [0x2D] }
    }

    /// The steps; empty for the whole text.
    package let tokens: [Token]

    package init(_ tokens: [Token]) { self.tokens = tokens }

    /// Parses a pointer. Nil if the text is neither empty nor starts with `/`, or has a `~` that is not followed by 0 or 1.
    package init?(_ text: String) { self.init(utf8: Array(text.utf8)) }

    /// Parses a pointer in UTF-8.
    init?(utf8 text: some Collection<UInt8>) {
        guard !text.isEmpty else {
            tokens = []
            return
        }
        guard text.first == 0x2F else { return nil }
        var tokens: [Token] = []
        var token: [UInt8] = []
        var hasTilde = false
        for byte in text.dropFirst() {
            if hasTilde {
                guard byte == 0x30 || byte == 0x31 else { return nil }
                token.append(byte == 0x30 ? 0x7E : 0x2F)
                hasTilde = false
            } else if byte == 0x7E {
                hasTilde = true
            } else if byte == 0x2F {
                tokens.append(Token(bytes: token))
                token = []
            } else {
                token.append(byte)
            }
        }
        guard !hasTilde else { return nil }
        tokens.append(Token(bytes: token))
        self.tokens = tokens
    }

    package var description: String {
        var text: [UInt8] = []
        for token in tokens {
            text.append(0x2F)
            for byte in token.bytes { Self.appendEscaped(byte, to: &text) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends a byte of a token, escaped for a pointer.
    static func appendEscaped(_ byte: UInt8, to text: inout [UInt8]) {
        switch byte {
        case 0x7E: text.append(contentsOf: [0x7E, 0x30])
        case 0x2F: text.append(contentsOf: [0x7E, 0x31])
        default: text.append(byte)
        }
    }

    /// Returns whether the value at `other` is inside the value at this path, and not that value itself.
    func isAbove(_ other: JSONPointer) -> Bool {
        tokens.count < other.tokens.count && other.tokens.starts(with: tokens)
    }
}
