import Bytes

/// Reads the lines of a TOML text: comments, and keys with strings, decimal numbers, booleans, or arrays of these.
///
/// All other valid TOML is a problem that says so: tables, dotted keys, inline tables, arrays in arrays, strings of several lines, dates and
/// times, numbers that are not decimal, `inf` and `nan`. The text must be valid UTF-8.
struct TOMLReader {
    enum Line: Equatable {
        case entry(TOMLDocument.Entry)
        /// The header of a table, at this byte offset.
        case table(Int)
    }

    typealias Problem = TOMLDocument.Problem
    typealias Value = TOMLDocument.Value

    /// The maximum length of a number; longer ones have no value in the supported range.
    private static let longestNumber = 64

    private let bytes: [UInt8]
    private var offset = 0
    private var isInArray = false
    /// Indicates whether the next line begins at `offset`, after a problem.
    private var isAtNextLine = false

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { offset == bytes.count }

    /// Reads a line, or several that an array spans; nil for one without a key.
    mutating func nextLine() throws(Problem) -> Line? {
        skipBlanks()
        let start = offset
        switch peek {
        case nil, UInt8(ascii: "#"), UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            try endLine("expected a key")
            return nil
        case UInt8(ascii: "["):
            skipLine()
            return .table(start)
        default: break
        }
        let key = try key()
        skipBlanks()
        let valueOffset = offset
        let value = try value()
        try endLine("expected the end of the line after the value")
        return .entry(TOMLDocument.Entry(key: key, offset: start, value: value, valueOffset: valueOffset))
    }

    /// Moves to the next line after a problem, behind the rest of an array.
    mutating func recover() {
        defer { (isInArray, isAtNextLine) = (false, false) }
        guard !isAtNextLine else { return }
        skipLine()
        while isInArray, !isAtEnd {
            skipBlanks()
            if isAtAssignment { return }
            let isLast = peek == UInt8(ascii: "]")
            skipLine()
            if isLast { return }
        }
    }

    // MARK: Bytes

    private var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private func byte(after count: Int) -> UInt8? {
        offset + count < bytes.count ? bytes[offset + count] : nil
    }

    private mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        offset += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte = peek, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { offset += 1 }
    }

    private mutating func skipLine() {
        while let byte = peek {
            offset += 1
            if byte == UInt8(ascii: "\n") { return }
        }
    }

    private mutating func consumeNewline() -> Bool {
        if consume(UInt8(ascii: "\n")) { return true }
        guard peek == UInt8(ascii: "\r"), byte(after: 1) == UInt8(ascii: "\n") else { return false }
        offset += 2
        return true
    }

    /// Control characters except the tab are invalid everywhere but as an escape.
    private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }

    private static func isBareKey(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Indicates whether a bare key with `=` follows. No value has this form.
    private var isAtAssignment: Bool {
        var rest = bytes[offset...]
        let key = rest.prefix { Self.isBareKey($0) }
        rest = rest[key.endIndex...].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        return !key.isEmpty && rest.first == UInt8(ascii: "=")
    }

    // MARK: Lines

    /// - Parameter expectation: the text of the problem if the line continues.
    private mutating func endLine(_ expectation: String) throws(Problem) {
        skipBlanks()
        if peek == UInt8(ascii: "#") { try skipComment() }
        guard !isAtEnd, !consumeNewline() else { return }
        throw Problem(
            offset: offset, reason: peek == UInt8(ascii: "\r") ? "a carriage return without a line feed" : expectation)
    }

    private mutating func skipComment() throws(Problem) {
        while let byte = peek, byte != UInt8(ascii: "\n") {
            if byte == UInt8(ascii: "\r"), self.byte(after: 1) == UInt8(ascii: "\n") { return }
            guard !Self.isControl(byte) else {
                throw Problem(offset: offset, reason: "a control character in a comment")
            }
            offset += 1
        }
    }

    private mutating func key() throws(Problem) -> String {
        let start = offset
        let key: String
        switch peek {
        case UInt8(ascii: "\""): key = try basicString()
        case UInt8(ascii: "'"): key = try literalString()
        default:
            while let byte = peek, Self.isBareKey(byte) { offset += 1 }
            guard offset > start else { throw Problem(offset: start, reason: "expected a key") }
            key = String(decoding: bytes[start..<offset], as: UTF8.self)
        }
        skipBlanks()
        guard peek != UInt8(ascii: ".") else {
            throw Problem(
                offset: start,
                reason: "dotted keys are not supported: write the whole name of an option, such as 'admin-tls-cert'")
        }
        guard consume(UInt8(ascii: "=")) else {
            throw Problem(offset: offset, reason: "expected '=' after the key '\(key.prefix(bytes: 64))'")
        }
        return key
    }

    // MARK: Values

    private mutating func value() throws(Problem) -> Value {
        switch peek {
        case nil, UInt8(ascii: "#"), UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            throw Problem(offset: offset, reason: "expected a value")
        case UInt8(ascii: "\""): return .string(try basicString())
        case UInt8(ascii: "'"): return .string(try literalString())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "{"): throw Problem(offset: offset, reason: "inline tables are not supported")
        default: return try word()
        }
    }

    private mutating func array() throws(Problem) -> [Value] {
        let start = offset
        guard !isInArray else { throw Problem(offset: start, reason: "arrays in arrays are not supported") }
        offset += 1
        isInArray = true
        var values: [Value] = []
        while true {
            try skipEmptyLines()
            if consume(UInt8(ascii: "]")) { break }
            guard !isAtEnd, !isAtAssignment else {
                isAtNextLine = true
                throw Problem(offset: start, reason: "the array is not closed")
            }
            values.append(try value())
            try skipEmptyLines()
            if consume(UInt8(ascii: ",")) { continue }
            if consume(UInt8(ascii: "]")) { break }
            guard !isAtEnd, !isAtAssignment else {
                isAtNextLine = true
                throw Problem(offset: start, reason: "the array is not closed")
            }
            throw Problem(offset: offset, reason: "expected ',' or ']' in the array")
        }
        isInArray = false
        return values
    }

    /// Moves to the next value of an array, behind comments.
    private mutating func skipEmptyLines() throws(Problem) {
        repeat {
            skipBlanks()
            if peek == UInt8(ascii: "#") { try skipComment() }
        } while consumeNewline()
    }

    /// Throws at the first quotation mark of a string that may have several lines, and moves behind the string.
    private mutating func refuseSeveralLines(_ mark: UInt8) throws(Problem) {
        guard byte(after: 1) == mark, byte(after: 2) == mark else { return }
        let start = offset
        offset += 3
        while !isAtEnd, !(peek == mark && byte(after: 1) == mark && byte(after: 2) == mark) {
            offset += peek == UInt8(ascii: "\\") && mark == UInt8(ascii: "\"") ? 2 : 1
            offset = min(offset, bytes.count)
        }
        offset = min(offset + 3, bytes.count)
        throw Problem(offset: start, reason: "strings of several lines are not supported; write '\\n' in a string")
    }

    private mutating func literalString() throws(Problem) -> String {
        try refuseSeveralLines(UInt8(ascii: "'"))
        let start = offset
        offset += 1
        while let byte = peek, byte != UInt8(ascii: "'") {
            try checkCharacter(byte, ofStringAt: start)
            offset += 1
        }
        guard consume(UInt8(ascii: "'")) else { throw Problem(offset: start, reason: "the string is not closed") }
        return String(decoding: bytes[(start + 1)..<(offset - 1)], as: UTF8.self)
    }

    private mutating func basicString() throws(Problem) -> String {
        try refuseSeveralLines(UInt8(ascii: "\""))
        let start = offset
        offset += 1
        var text: [UInt8] = []
        while let byte = peek, byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\") {
                let scalar = try escape()
                text += String(scalar).utf8
            } else {
                try checkCharacter(byte, ofStringAt: start)
                text.append(byte)
                offset += 1
            }
        }
        guard consume(UInt8(ascii: "\"")) else { throw Problem(offset: start, reason: "the string is not closed") }
        return String(decoding: text, as: UTF8.self)
    }

    private func checkCharacter(_ byte: UInt8, ofStringAt start: Int) throws(Problem) {
        if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") {
            throw Problem(offset: start, reason: "the string is not closed in its line")
        }
        guard !Self.isControl(byte) else {
            throw Problem(offset: offset, reason: "a control character in a string; write an escape such as \\u0007")
        }
    }

    private mutating func escape() throws(Problem) -> Unicode.Scalar {
        let start = offset
        let character = byte(after: 1)
        offset = min(offset + 2, bytes.count)
        switch character {
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "u"): return try scalar(digits: 4, ofEscapeAt: start)
        case UInt8(ascii: "U"): return try scalar(digits: 8, ofEscapeAt: start)
        default:
            // It may be the end of the line.
            offset = start
            throw Problem(
                offset: start,
                reason: "unknown escape; write \\\\ for a backslash, or the string in single quotation marks")
        }
    }

    private mutating func scalar(digits count: Int, ofEscapeAt start: Int) throws(Problem) -> Unicode.Scalar {
        let digits = bytes[offset...].prefix(count)
        // `UInt32` would accept a sign.
        guard digits.count == count, digits.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }),
            let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16), let scalar = Unicode.Scalar(number)
        else {
            throw Problem(
                offset: start, reason: "the escape needs \(count) hexadecimal digits of a Unicode scalar")
        }
        offset += count
        return scalar
    }

    /// Reads a number or a boolean.
    private mutating func word() throws(Problem) -> Value {
        let start = offset
        let others = [UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: ":")]
        while let byte = peek, Self.isBareKey(byte) || others.contains(byte) { offset += 1 }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        func problem(_ reason: String) -> Problem { Problem(offset: start, reason: reason) }
        guard text.utf8.count <= Self.longestNumber else {
            throw problem("not a value: write strings in quotation marks")
        }
        if text == "true" || text == "false" { return .boolean(text == "true") }
        if text.wholeMatch(of: /[+\-]?(?:0|[1-9](?:_?[0-9])*)/) != nil {
            guard let number = Int(text.filter { $0 != "_" }) else { throw problem("\(text) is too large") }
            return .integer(number)
        }
        let float = /[+\-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*)?(?:[eE][+\-]?[0-9](?:_?[0-9])*)?/
        if text.wholeMatch(of: float) != nil {
            guard let number = Double(text.filter { $0 != "_" }), number.isFinite else {
                throw problem("\(text) is too large")
            }
            return .float(number)
        }
        if text.wholeMatch(of: /[+\-]?(?:inf|nan)/) != nil { throw problem("inf and nan are not supported") }
        if text.prefixMatch(of: /0[xob]/) != nil { throw problem("only decimal numbers are supported") }
        if text.prefixMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}/) != nil {
            throw problem("dates and times are not supported; write a string")
        }
        if text.prefixMatch(of: /[+\-]?0[0-9]/) != nil {
            throw problem("\(text) is not a number: it must not begin with 0")
        }
        throw problem(
            "\(text.isEmpty ? "expected a value" : "'\(text)' is not a value"): write strings in quotation marks, decimal numbers, "
                + "true or false")
    }
}
