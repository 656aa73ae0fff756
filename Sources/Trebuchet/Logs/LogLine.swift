internal import Glibc

/// A text on one line, without what a terminal takes for commands: nobody writes lines of his own into a log, or changes what
/// stands there.
package enum LogLine {
    /// In Unicode scalars: one character may have any number of them.
    package static let longest = 8_192

    /// Of a longer text the beginning, and that there is more.
    package static func of(_ text: String) -> String { of(text) { isCommand($0) } }

    /// The same of a name: of two names that differ so do the lines, as a backslash is escaped too.
    static func ofName(_ name: String) -> String { of(name) { isCommand($0) || $0 == "\\" } }

    private static func of(_ text: String, escaping isEscaped: (Unicode.Scalar) -> Bool) -> String {
        var line = ""
        var count = 0
        for scalar in text.unicodeScalars {
            count += 1
            guard count <= longest else { return line + "…" }
            if isEscaped(scalar) {
                line += scalar.escaped(asASCII: true)
            } else {
                line.unicodeScalars.append(scalar)
            }
        }
        return line
    }

    /// Whether a terminal could take it for a command, or a reader for another place in the line.
    static func isCommand(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .format: true
        default: false
        }
    }

    /// JSON that somebody else may have written, as it is, but for what a terminal takes for commands: that is escaped as JSON has it.
    package static func ofJSON(_ json: String) -> String {
        var line = ""
        for scalar in json.unicodeScalars {
            // Between values line breaks and tabs may stand, and in none.
            guard isCommand(scalar), scalar != "\n", scalar != "\t" else {
                line.unicodeScalars.append(scalar)
                continue
            }
            for unit in UTF16.encode(scalar)! {
                let digits = String(unit, radix: 16)
                line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return line
    }
}

/// The time of a line, in UTC.
enum LogTime {
    /// `2026-05-01T12:00:00.000Z`
    static var now: String {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return text(seconds: time.tv_sec, milliseconds: time.tv_nsec / 1_000_000)
    }

    static func text(seconds: Int, milliseconds: Int) -> String {
        var (seconds, parts) = (seconds, tm())
        gmtime_r(&seconds, &parts)
        func digits(_ value: some BinaryInteger, _ count: Int) -> String {
            let text = "\(value)"
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(digits(parts.tm_year + 1_900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))T"
            + "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2)).\(digits(milliseconds, 3))Z"
    }
}
