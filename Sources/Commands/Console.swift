internal import Glibc

/// What a command says beside its results.
package enum Console {
    /// Whether somebody watches standard error.
    package static var isWatched: Bool { isatty(STDERR_FILENO) != 0 }

    /// Prints a line to standard error.
    package static func error(_ line: String) { prompt(line + "\n") }

    /// Prints a question to standard error; the answer stands behind it.
    package static func prompt(_ question: String) {
        var text = question
        text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
