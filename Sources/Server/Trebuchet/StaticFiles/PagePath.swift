/// The path of a request, split and decoded (RFC 3986 §2.1, §3.3). Pure.
package struct PagePath: Equatable {
    /// The reason why a path is invalid.
    package enum InvalidPath: Error, Equatable {
        /// A percent sign without two hexadecimal digits.
        case malformed
        /// A part is `..`, empty, or contains a slash, a backslash or a control character.
        case invalidPart
        /// A part begins with a dot.
        case hidden
    }

    /// The decoded parts; bytes, since file names may be any bytes.
    let parts: [[UInt8]]
    /// Whether the path ends in a slash, as paths of folders do.
    let isFolder: Bool

    /// - Parameter path: the percent-encoded path without the query.
    init(_ path: String, showsDotFiles: Bool = false) throws(InvalidPath) {
        let bytes = Array(path.utf8)
        guard bytes.first == UInt8(ascii: "/") else { throw .invalidPart }
        isFolder = bytes.last == UInt8(ascii: "/")
        var parts: [[UInt8]] = []
        let inner = bytes.dropFirst().dropLast(isFolder && bytes.count > 1 ? 1 : 0)
        // `//` yields an empty part, which is invalid.
        if bytes.count > 1 {
            for part in inner.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
                parts.append(try Self.part(part, showsDotFiles))
            }
        }
        self.parts = parts
    }

    private init(parts: [[UInt8]], isFolder: Bool) {
        self.parts = parts
        self.isFolder = isFolder
    }

    /// The path `/`.
    static let root = PagePath(parts: [], isFolder: true)

    private static func part(_ encoded: ArraySlice<UInt8>, _ showsDotFiles: Bool) throws(InvalidPath) -> [UInt8] {
        let part = try decode(encoded)
        guard !part.isEmpty, part != Array(".".utf8), part != Array("..".utf8),
            part.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") })
        else { throw .invalidPart }
        guard showsDotFiles || part[0] != UInt8(ascii: ".") else { throw .hidden }
        return part
    }

    /// Decodes once; doubly encoded text stays encoded once.
    package static func decode(_ encoded: ArraySlice<UInt8>) throws(InvalidPath) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(encoded.count)
        var at = encoded.startIndex
        while at < encoded.endIndex {
            guard encoded[at] == UInt8(ascii: "%") else {
                decoded.append(encoded[at])
                at += 1
                continue
            }
            guard at + 2 < encoded.endIndex, let high = digit(encoded[at + 1]), let low = digit(encoded[at + 2]) else {
                throw .malformed
            }
            decoded.append(high << 4 | low)
            at += 3
        }
        return decoded
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// Returns the parts after the prefix; nil if the path does not begin with it.
    func suffix(after prefix: [[UInt8]]) -> ArraySlice<[UInt8]>? {
        parts.starts(with: prefix) ? parts.dropFirst(prefix.count) : nil
    }
}
