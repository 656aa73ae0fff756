internal import Glibc
internal import Platform

/// The output of commands: results go to standard output, everything else to standard error.
package enum Console {
    /// A Boolean value that indicates whether standard error is a terminal.
    package static var isWatched: Bool { isatty(STDERR_FILENO) != 0 }

    /// Prints a line to standard error, and does not wait for its reader.
    package static func error(_ line: String) { StandardStream.error.write(soon: line) }

    /// Prints a question to standard error, without an end of the line.
    package static func prompt(_ question: String) { StandardStream.error.write(question) }

    /// Prints a result to standard output, and waits until it is written. If that fails, the process ends: as by
    /// SIGPIPE when the reader has closed the pipe, or with status 1 and a message after another error, for instance
    /// when a disk is full.
    package static func print(_ text: String = "", terminator: String = "\n") {
        let number = StandardStream.output.write(text + terminator)
        guard number != 0 else { return }
        if number == EPIPE {
            StandardStream.error.flush(within: .seconds(1))
            BrokenPipes.endProcess()
        }
        error("trebuchet: writing to standard output failed: \(String(cString: strerror(number)))")
        exit(1)
    }

    /// Prints a line about the state of a server to standard output, and does not wait for its reader.
    package static func announce(_ line: String) { StandardStream.output.write(soon: line) }
}
