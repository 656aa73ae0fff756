/// One option of a command: `--port PORT`.
package struct OptionSpec: Sendable {
    /// The values that an option accepts.
    package enum Form: Sendable {
        case text
        /// One of these words.
        case choice([String])
        case integer(ClosedRange<Int>)
        case number(ClosedRange<Double>)
        /// Texts, separated by commas.
        case list
    }

    /// Throws if a value is invalid. The text of the error begins with the name of the option.
    package typealias Check = @Sendable (_ value: String) throws(UsageError) -> Void

    /// The name with its dashes: `--port`.
    package let name: String
    /// The placeholder of the value in the help; nil for a flag. A placeholder in brackets marks an optional value,
    /// which is empty by default.
    package let value: String?
    private let meaning: String
    /// The value without the option, or its description, such as `one per core`; nil if there is none to show.
    package let fallback: String?
    package let form: Form
    /// The name of another option, without which this one has no effect.
    package let requirement: String?
    /// For an option that names a file with a secret: the environment variable that may have the secret itself.
    package let secretVariable: String?
    private let check: Check?
    private let mask: @Sendable (String) -> String

    /// - Parameters:
    ///   - fallback: the default, which the help shows in parentheses.
    ///   - check: validates a value beyond its form.
    ///   - mask: replaces secrets in a value, for output.
    package init(
        _ name: String, _ value: String? = nil, _ help: String, default fallback: String? = nil, form: Form = .text,
        requires requirement: String? = nil, secretVariable: String? = nil, check: Check? = nil,
        mask: @escaping @Sendable (String) -> String = { $0 }
    ) {
        self.name = name
        self.value = value
        meaning = help
        self.fallback = fallback
        self.form = form
        self.requirement = requirement
        self.secretVariable = secretVariable
        self.check = check
        self.mask = mask
    }

    /// The description, with the default in parentheses.
    package var help: String { meaning + (fallback.map { " (\($0))" } ?? "") }

    /// The name and the placeholder: `--port PORT`.
    package var head: String { name + (value.map { " " + $0 } ?? "") }

    /// The key in a configuration file: `admin-token-file`.
    package var key: String { String(name.dropFirst(2)) }

    /// The environment variable: `TREBUCHET_ADMIN_TOKEN_FILE`.
    package var variable: String {
        "TREBUCHET_" + String(key.uppercased().map { $0 == "-" ? "_" : $0 })
    }

    package var isFlag: Bool { value == nil }

    /// Indicates whether the option may be set without its value.
    package var hasOptionalValue: Bool { value?.hasPrefix("[") == true }

    /// Returns the value without secrets, for output.
    package func masked(_ value: String) -> String { mask(value) }

    /// Throws if the value does not have the form of the option, or is invalid otherwise.
    package func validate(_ value: String) throws(UsageError) {
        switch form {
        case .integer(let range):
            guard let number = Int(value), range.contains(number) else {
                throw Self.outOfRange(name, "\(range.lowerBound) and \(range.upperBound)", value)
            }
        case .number(let range):
            guard let number = Double(value), range.contains(number) else {
                throw Self.outOfRange(name, "\(range.lowerBound) and \(range.upperBound)", value)
            }
        case .choice(let words):
            guard words.contains(value) else {
                let list =
                    words.count == 2
                    ? words.map { "'\($0)'" }.joined(separator: " or ") : "one of " + words.joined(separator: ", ")
                throw UsageError("\(name): '\(value)' is not \(list)")
            }
        case .text, .list: break
        }
        try check?(value)
    }

    static func outOfRange(_ name: String, _ range: String, _ value: String) -> UsageError {
        UsageError("\(name) must be a number between \(range), not '\(value)'")
    }
}

/// The origin of the value of an option.
package enum OptionOrigin: Hashable, Sendable, CustomStringConvertible {
    case commandLine
    /// The environment variable of this name.
    case variable(String)
    case file(path: String, line: Int)

    package var description: String {
        switch self {
        case .commandLine: "command line"
        case .variable(let name): name
        case .file(let path, let line): "\(path):\(line)"
        }
    }
}

/// The value of an option that is not from the command line.
package struct OptionSetting: Hashable, Sendable {
    /// The name of the option with its dashes.
    package let name: String
    /// The value; empty for a flag, and nil for an option that is turned off.
    package let value: String?
    package let origin: OptionOrigin

    package init(_ name: String, _ value: String?, from origin: OptionOrigin) {
        self.name = name
        self.value = value
        self.origin = origin
    }
}
