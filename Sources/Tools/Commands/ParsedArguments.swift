internal import Platform
internal import TrebuchetServices

/// The error for an invalid command line.
package struct UsageError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The options and operands of a command line, validated against the command.
package struct ParsedArguments: Sendable {
    package private(set) var operands: [String] = []
    package private(set) var wantsHelp = false
    private let options: [OptionSpec]
    private var values: [String: String] = [:]
    private var lists: [String: [String]] = [:]
    /// The options that are turned off, as by `--compression=false`.
    private var disabled: Set<String> = []
    /// The origins of values that are not from the command line.
    private var origins: [String: OptionOrigin] = [:]

    package init(_ arguments: [String], for command: CommandSpec) throws(UsageError) {
        options = command.options
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                operands += rest
                break
            }
            // A negative number is an operand: `trebuchet call counter 'add(_:)' -3`.
            guard argument.hasPrefix("-"), argument != "-", Double(argument) == nil else {
                operands.append(argument)
                continue
            }
            if argument == "--help" || argument == "-h" {
                wantsHelp = true
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
            guard let option = command.options.first(where: { $0.name == parts[0] }) else {
                throw Self.unknown(parts[0], command)
            }
            let given = parts.count == 2 ? parts[1] : nil
            if option.isFlag || option.hasOptionalValue, let given, ["true", "false"].contains(given) {
                turn(option.name, on: given == "true")
                continue
            }
            disabled.remove(option.name)
            guard let placeholder = option.value else {
                guard given == nil else { throw UsageError("\(option.name) takes no value, except =true and =false") }
                values[option.name] = ""
                continue
            }
            if option.hasOptionalValue, given == nil {
                // An optional value: the next argument is the value only if it is not an option.
                values[option.name] = rest.first.map { $0.hasPrefix("-") } ?? true ? "" : rest.popFirst()
                continue
            }
            guard let value = given ?? rest.popFirst() else {
                throw UsageError("\(option.name) requires a value: \(option.name) \(placeholder)")
            }
            values[option.name] = value
            lists[option.name, default: []].append(value)
        }
        guard !wantsHelp else { return }
        guard command.operandCount.contains(operands.count) else {
            let missing = command.requiredOperands.dropFirst(operands.count)
            let what =
                missing.isEmpty || operands.count > command.operandCount.upperBound
                ? "\(operands.count.counted("operand")) given"
                : "\(missing.joined(separator: " ")) \(missing.count == 1 ? "is" : "are") missing"
            throw UsageError("\(what)\n\(command.usage)")
        }
    }

    private static func unknown(_ name: String, _ command: CommandSpec) -> UsageError {
        let names = command.options.map(\.name) + ["--help"]
        let hint = NearestMatch.find(name, in: names).map { "; did you mean \($0)?" } ?? ""
        let mayBeOperand = !name.hasPrefix("--") && command.operandCount.upperBound > 0
        let behind = mayBeOperand ? "; put operands that begin with a dash after --" : ""
        return UsageError("unknown option \(name)\(hint)\(behind)\n\(command.usage)")
    }

    private mutating func turn(_ name: String, on isOn: Bool) {
        values[name] = isOn ? "" : nil
        if isOn { disabled.remove(name) } else { disabled.insert(name) }
    }

    /// Adds a value from another origin than the command line. It has no effect on an option that is set already.
    package mutating func add(_ setting: OptionSetting) {
        guard origin(of: setting.name) == nil else { return }
        origins[setting.name] = setting.origin
        if let value = setting.value {
            values[setting.name] = value
            lists[setting.name] = [value]
        } else {
            disabled.insert(setting.name)
        }
    }

    /// Replaces an option by the same option of other arguments.
    package mutating func copy(_ name: String, from other: ParsedArguments) {
        values[name] = other.values[name]
        lists[name] = other.lists[name]
        origins[name] = other.origins[name]
        if other.disabled.contains(name) { disabled.insert(name) } else { disabled.remove(name) }
    }

    /// Returns the origin of the value of an option, or of the choice to turn it off; nil for an option that is not set.
    package func origin(of name: String) -> OptionOrigin? {
        guard values[name] != nil || disabled.contains(name) else { return nil }
        return origins[name] ?? .commandLine
    }

    /// Validates all values, and that no option lacks another one that it requires.
    package func validate() throws(UsageError) {
        for option in options {
            guard let value = values[option.name] else { continue }
            try option.validate(value)
            if let requirement = option.requirement, !has(requirement) {
                throw UsageError("\(option.name) requires \(requirement)")
            }
        }
    }

    /// Returns an error with the origin of the first option in its text that is not from the command line.
    package func withOrigin(_ error: UsageError) -> UsageError {
        let names = error.description.matches(of: /--[a-z][a-z\-]*/).map { String($0.output) }
        guard let name = names.first(where: { origins[$0] != nil }), let origin = origins[name] else { return error }
        return UsageError("\(error.description) (\(name) comes from \(origin))")
    }

    package func has(_ name: String) -> Bool { values[name] != nil }

    package func string(_ name: String) -> String? { values[name] }

    /// Returns the value of an option, or else its default in the list of options.
    package func effective(_ name: String) -> String? { values[name] ?? fallback(name) }

    private func fallback(_ name: String) -> String? { options.first { $0.name == name }?.fallback }

    /// Returns the value of an option for output, without secrets, or else its default.
    package func shown(_ option: OptionSpec) -> String {
        guard let value = values[option.name] else {
            if option.isFlag || disabled.contains(option.name) { return "false" }
            return option.fallback ?? "-"
        }
        return value.isEmpty && (option.isFlag || option.hasOptionalValue) ? "true" : option.masked(value)
    }

    /// Returns all values of an option that may occur several times.
    package func all(_ name: String) -> [String] { lists[name] ?? [] }

    package func int(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw OptionSpec.outOfRange(name, "\(range.lowerBound) and \(range.upperBound)", text)
        }
        return value
    }

    package func double(_ name: String, in range: ClosedRange<Double>) throws(UsageError) -> Double? {
        guard let text = values[name] else { return nil }
        guard let value = Double(text), range.contains(value) else {
            throw OptionSpec.outOfRange(name, "\(range.lowerBound) and \(range.upperBound)", text)
        }
        return value
    }

    /// Returns the value of an option whose form is `integer`, or else its default, if that is a number.
    package func int(_ name: String) throws(UsageError) -> Int? {
        guard case .integer(let range) = options.first(where: { $0.name == name })?.form else { return nil }
        return try int(name, in: range) ?? fallback(name).flatMap { Int($0) }
    }

    /// Returns the value of an option whose form is `number`, or else its default, if that is a number.
    package func double(_ name: String) throws(UsageError) -> Double? {
        guard case .number(let range) = options.first(where: { $0.name == name })?.form else { return nil }
        return try double(name, in: range) ?? fallback(name).flatMap { Double($0) }
    }
}
