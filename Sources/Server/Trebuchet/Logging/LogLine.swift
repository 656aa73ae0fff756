internal import Glibc

/// Text on one line without characters that a terminal interprets. Input from peers can therefore neither add log lines nor
/// change existing ones.
package enum LogLine {
    /// The maximum length in Unicode scalars, since one character may have any number of them.
    package static let longest = 8_192

    /// Returns the escaped text, truncated with `…` if it is too long.
    package static func of(_ text: String) -> String { of(text) { isCommand($0) } }

    /// Returns an escaped name. Backslashes are escaped too, so that different names give different lines.
    package static func ofName(_ name: String) -> String { of(name) { isCommand($0) || $0 == "\\" } }

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

    /// Returns whether a terminal could interpret the scalar, or a log reader mistake it for a line break.
    package static func isCommand(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .format: true
        default: false
        }
    }

    /// Returns JSON from an untrusted source unchanged, except that characters a terminal interprets become JSON escapes.
    package static func ofJSON(_ json: String) -> String {
        var line = ""
        for scalar in json.unicodeScalars {
            // Line breaks and tabs are valid between JSON values and invalid inside strings.
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

/// The time of a log line, in UTC.
enum LogTime {
    /// The current time, as `2026-05-01T12:00:00.000Z`.
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
