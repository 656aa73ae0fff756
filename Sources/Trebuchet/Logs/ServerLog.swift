internal import Glibc

/// Where a server writes what no caller is told.
public enum ServerLog {
    /// A line on standard error.
    public static let standardError: @Sendable (String) -> Void = { line in
        let text = "trebuchet: \(line)\n"
        // In one call, so that lines of several threads stay whole.
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// A text on one line, without what a terminal takes for commands: nobody writes lines of his own into a log, or changes what
/// stands there.
package enum LogLine {
    /// In Unicode scalars: one character may have any number of them.
    package static let longest = 8_192

    /// Of a longer text the beginning, and that there is more.
    package static func of(_ text: String) -> String {
        var line = ""
        var count = 0
        for scalar in text.unicodeScalars {
            count += 1
            guard count <= longest else { return line + "…" }
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .format: line += scalar.escaped(asASCII: true)
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}
