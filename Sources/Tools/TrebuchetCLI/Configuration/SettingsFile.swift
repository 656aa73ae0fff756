import Bytes
import Commands
import Platform
import TrebuchetServices

/// A configuration file: TOML whose keys are names of options without their dashes.
struct SettingsFile {
    /// A problem in a file, with its place.
    struct Problem: Hashable, CustomStringConvertible {
        let path: String
        let position: TOMLDocument.Position
        let reason: String

        /// The text form: `trebuchet.toml:3:8: port must be a number between 0 and 65535, not '70000'`.
        var description: String { "\(path):\(position.line):\(position.column): \(reason)" }
    }

    /// The maximum size of a file in bytes.
    static let maximumBytes = 1 << 20

    /// The valid settings, in the order of the file.
    let settings: [OptionSetting]
    /// The problems in the order of the file.
    let problems: [Problem]

    /// Reads a file.
    ///
    /// - Parameter option: the option that names the file, for the error of a file that cannot be read.
    init(contentsOfFile path: String, of option: String?, options: [OptionSpec]) throws(UsageError) {
        let bytes = try ConfigurationFile.read(path, of: option, maximum: Self.maximumBytes)
        self.init(bytes.withoutByteOrderMark, path: path, options: options)
    }

    init(_ text: [UInt8], path: String, options: [OptionSpec]) {
        let document = TOMLDocument(text)
        var settings: [OptionSetting] = []
        var problems = document.problems.map {
            Problem(path: path, position: document.position(of: $0.offset), reason: $0.reason)
        }
        for entry in document.entries where problems.count < TOMLDocument.maximumProblems {
            do throws(Mismatch) {
                let option = try Self.option(entry.key, in: options)
                let value = try Self.value(entry, of: option)
                let line = document.position(of: entry.offset).line
                settings.append(OptionSetting(option.name, value, from: .file(path: path, line: line)))
            } catch {
                let offset = error.isOfKey ? entry.offset : entry.valueOffset
                problems.append(Problem(path: path, position: document.position(of: offset), reason: error.reason))
            }
        }
        self.settings = settings
        self.problems = problems.sorted { $0.position < $1.position }
    }

    /// Returns a warning for each setting that requires another option, which the file does not have.
    func incompleteSettings(of options: [OptionSpec]) -> [Problem] {
        let names = Set(settings.filter { $0.value != nil }.map(\.name))
        return settings.compactMap { setting in
            guard setting.value != nil, case .file(let path, let line) = setting.origin,
                let option = options.first(where: { $0.name == setting.name }), let requirement = option.requirement,
                !names.contains(requirement)
            else { return nil }
            return Problem(
                path: path, position: .init(line: line, column: 1),
                reason: "\(option.key) requires \(requirement), which the command line or the environment must have")
        }
    }

    /// The error of an entry that is no valid setting.
    private struct Mismatch: Error {
        let reason: String
        var isOfKey = false
    }

    private static func option(_ key: String, in options: [OptionSpec]) throws(Mismatch) -> OptionSpec {
        func mismatch(_ reason: String) -> Mismatch { Mismatch(reason: reason, isOfKey: true) }
        guard let option = options.first(where: { $0.key == key }) else {
            if let secret = options.first(where: { $0.key == key + "-file" }), let variable = secret.secretVariable {
                throw mismatch("a secret is not allowed in the file: use '\(secret.key)' or the variable \(variable)")
            }
            let hint = NearestMatch.find(key.prefix(bytes: 64), in: options.map(\.key)).map {
                "; did you mean '\($0)'?"
            }
            throw mismatch("unknown key '\(key.prefix(bytes: 64))'\(hint ?? "")")
        }
        guard option.name != ServeOptions.file.name else {
            throw mismatch("\(key) is not allowed in the file: use \(option.name) or the variable \(option.variable)")
        }
        return option
    }

    private static func value(_ entry: TOMLDocument.Entry, of option: OptionSpec) throws(Mismatch) -> String? {
        if case .boolean(let isOn) = entry.value, option.isFlag || option.hasOptionalValue { return isOn ? "" : nil }
        let text = try text(entry.value, of: option)
        guard !text.isEmpty else { throw Mismatch(reason: "\(option.key) must not be empty; omit the key instead") }
        // A path would end there.
        guard !text.utf8.contains(0) else { throw Mismatch(reason: "\(option.key) must not contain a NUL character") }
        guard option.masked(text) == text else {
            throw Mismatch(
                reason:
                    "a secret is not allowed in the file: set \(option.variable) to the URL with the password or key")
        }
        do throws(UsageError) {
            try option.validate(text)
        } catch {
            // The name of the option, at the beginning of the text, is a key here.
            let reason = error.description
            throw Mismatch(reason: reason.hasPrefix(option.name) ? String(reason.dropFirst(2)) : reason)
        }
        return text
    }

    /// Returns a value as it would be on the command line.
    private static func text(_ value: TOMLDocument.Value, of option: OptionSpec) throws(Mismatch) -> String {
        func mismatch(_ expected: String) -> Mismatch { Mismatch(reason: "\(option.key) must be \(expected)") }
        guard !option.isFlag else { throw mismatch("true or false") }
        switch (option.form, value) {
        case (.integer, .integer(let number)), (.number, .integer(let number)): return "\(number)"
        case (.integer, _): throw mismatch("a whole number, without quotation marks")
        case (.number, .float(let number)): return "\(number)"
        case (.number, _): throw mismatch("a number, without quotation marks")
        case (.list, .array(let values)):
            var texts: [String] = []
            for value in values {
                guard case .string(let text) = value else { throw mismatch(#"a list of strings, such as ["a", "b"]"#) }
                guard !text.isEmpty, !text.contains(",") else {
                    throw Mismatch(
                        reason: "\(option.key): a value in the list must not be empty, and not contain a comma")
                }
                texts.append(text)
            }
            return texts.joined(separator: ",")
        case (_, .string(let text)): return text
        case (.list, _): throw mismatch(#"a list of strings, such as ["a", "b"]"#)
        case (_, .integer(let number)) where option.hasOptionalValue: return "\(number)"
        default:
            throw mismatch(
                option.hasOptionalValue ? "a string, a whole number, true or false" : "a string, in quotation marks")
        }
    }
}

/// The error of an invalid configuration file, with all of its problems.
struct SettingsFileError: Error, CustomStringConvertible {
    let problems: [SettingsFile.Problem]

    var description: String { problems.map(\.description).joined(separator: "\n") }
}
