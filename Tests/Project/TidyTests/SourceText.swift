/// A Swift file split into code and comments, line by line.
///
/// Both parts keep the line numbers of the file. In the code, comments and the content of string literals are blank (quotes and
/// interpolations remain), so that a rule that searches for a word finds it only in code.
struct SourceText: Sendable {
    let path: String
    let lines: [String]
    let code: [String]
    let comments: [String]
    /// The code with its string literals.
    let uncommented: [String]
    /// Every identifier in the code.
    let identifiers: Set<String>

    init(path: String, _ text: String) {
        self.path = path
        var scanner = Scanner(Array(text.utf8))
        scanner.scanCode(untilParenthesis: false)
        lines = Self.lines(of: Array(text.utf8))
        code = Self.lines(of: scanner.code)
        comments = Self.lines(of: scanner.comments)
        uncommented = Self.lines(of: scanner.uncommented)
        identifiers = Set(
            scanner.code.split { !Scanner.isWord($0) }.map { String(decoding: $0, as: UTF8.self) })
    }

    var name: String { String(path.split(separator: "/").last ?? "") }

    /// True if the file is part of tests or of programs for tests.
    var isTestCode: Bool { path.hasPrefix("Tests/") || path.hasPrefix("Tools/") }

    /// `Sources/State/Relays/Monitor.swift` belongs to `Relays`, as in `Tests`, `Benchmarks/Progress.swift` to `Benchmarks`, and a file of an example in
    /// `Examples/todos-web/Sources/TodosWeb` to `TodosWeb`.
    var module: String? {
        let parts = path.split(separator: "/").dropLast().map(String.init)
        switch parts.first {
        case "Benchmarks": return parts[0]
        case "Examples": return parts.count > 3 ? parts[3] : nil
        // The tests of a fixture that is a package.
        case "Tests" where parts.count > 4 && parts[1] == "Fixtures" && parts[3] == "Tests": return parts[4]
        case "Sources", "Tests": return parts.count > 2 ? parts[2] : nil
        default: return parts.count > 1 ? parts[1] : nil
        }
    }

    private static func lines(of bytes: [UInt8]) -> [String] {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }
}

/// Scans the bytes of a file once and copies each to its part.
private struct Scanner {
    private let bytes: [UInt8]
    private var position = 0
    private(set) var code: [UInt8]
    private(set) var comments: [UInt8]
    private(set) var uncommented: [UInt8]

    private static let special = Set("/\"#()".utf8)
    private static let specialInString = Set("\\\"\n".utf8)

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        let blank = bytes.map { $0 == UInt8(ascii: "\n") ? $0 : UInt8(ascii: " ") }
        code = blank
        comments = blank
        uncommented = bytes
    }

    static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }

    /// Scans to the end, or past the parenthesis that ends an interpolation.
    mutating func scanCode(untilParenthesis: Bool) {
        var depth = 0
        while position < bytes.count {
            // Nearly all bytes take this path, which keeps the tests quick.
            if !Self.special.contains(bytes[position]) {
                takeCode()
            } else if starts("//") {
                while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { takeComment() }
            } else if starts("/*") {
                scanBlockComment()
            } else if let hashes = openingQuote() {
                scanString(hashes: hashes)
            } else {
                if starts("(") { depth += 1 }
                if starts(")") { depth -= 1 }
                if untilParenthesis, depth < 0 {
                    position += 1
                    return
                }
                takeCode()
            }
        }
    }

    private mutating func scanBlockComment() {
        var depth = 0
        repeat {
            if starts("/*") {
                depth += 1
                takeComment(2)
            } else if starts("*/") {
                depth -= 1
                takeComment(2)
            } else {
                takeComment()
            }
        } while depth > 0 && position < bytes.count
    }

    /// The number of `#` before the quote at this position; nil when no string starts here.
    private func openingQuote() -> Int? {
        var end = position
        while end < bytes.count, bytes[end] == UInt8(ascii: "#") { end += 1 }
        return end < bytes.count && bytes[end] == UInt8(ascii: "\"") ? end - position : nil
    }

    private mutating func scanString(hashes: Int) {
        let pounds = String(repeating: "#", count: hashes)
        takeCode(hashes)
        let quote = starts("\"\"\"") ? "\"\"\"" : "\""
        takeCode(quote.utf8.count)
        while position < bytes.count {
            if !Self.specialInString.contains(bytes[position]) {
                position += 1
            } else if starts("\\" + pounds + "(") {
                position += 2 + hashes
                scanCode(untilParenthesis: true)
            } else if starts("\\" + pounds) {
                position += 2 + hashes
            } else if starts(quote + pounds) {
                return takeCode(quote.utf8.count + hashes)
            } else if quote == "\"", starts("\n") {
                return  // Not closed on its line: not a string after all, or code that does not compile.
            } else {
                position += 1
            }
        }
    }

    private func starts(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    private mutating func takeCode(_ count: Int = 1) {
        for _ in 0..<count where position < bytes.count {
            code[position] = bytes[position]
            position += 1
        }
    }

    private mutating func takeComment(_ count: Int = 1) {
        for _ in 0..<count where position < bytes.count {
            comments[position] = bytes[position]
            uncommented[position] = code[position]
            position += 1
        }
    }
}
