internal import Transports

/// Parses a complete HTTP head from `HTTPHeadScanner` (RFC 9112 §2–5). It is strict, because differences between parsers allow
/// request smuggling.
enum HTTPHeadParser {
    /// Returns the first line and the fields.
    static func parse(_ head: UnsafeRawBufferPointer) throws(HTTPRejection) -> (firstLine: String, headers: HTTPHeaders)
    {
        var lines: [UnsafeRawBufferPointer] = []
        var start = 0
        for at in 0..<head.count where head[at] == 0x0A {
            lines.append(UnsafeRawBufferPointer(rebasing: head[start..<(at - 1)]))
            start = at + 1
        }
        var headers = HTTPHeaders()
        for line in lines.dropFirst() where !line.isEmpty { try parseField(line, into: &headers) }
        return (String(decoding: lines.first ?? head, as: UTF8.self), headers)
    }

    private static func parseField(_ line: UnsafeRawBufferPointer, into headers: inout HTTPHeaders)
        throws(HTTPRejection)
    {
        guard line[0] != 0x20, line[0] != 0x09 else { throw HTTPRejection(400, "folded header line") }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            throw HTTPRejection(400, "header line without a colon")
        }
        // This also rejects a space before the colon (RFC 9112 §5.1).
        guard isToken(line[..<colon]) else { throw HTTPRejection(400, "header name is not a token") }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        headers.add(String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
    }

    /// Returns whether the bytes are a token (RFC 9110 §5.6.2).
    static func isToken(_ bytes: some Collection<UInt8>) -> Bool { !bytes.isEmpty && bytes.allSatisfy(isTokenByte) }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        // ! # $ % & ' * + - . ^ _ ` | ~
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: false
        }
    }

    /// Returns whether the byte is allowed in a field value: no control character except tab (RFC 9110 §5.5).
    static func isFieldByte(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

    /// Returns the minor version of `HTTP/1.x`.
    static func minorVersion(_ text: Substring) throws(HTTPRejection) -> Int {
        let bytes = Array(text.utf8)
        guard bytes.count == 8, text.hasPrefix("HTTP/"), bytes[6] == UInt8(ascii: "."),
            (0x30...0x39).contains(bytes[5]), (0x30...0x39).contains(bytes[7])
        else { throw HTTPRejection(400, "first line has no HTTP version") }
        guard bytes[5] == UInt8(ascii: "1") else { throw HTTPRejection(505, "only HTTP/1.1 is supported") }
        return Int(bytes[7] - 0x30)
    }
}
