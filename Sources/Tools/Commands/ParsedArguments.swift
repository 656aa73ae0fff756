internal import Platform
internal import TrebuchetServices

/// The error for an invalid command line.
package struct UsageError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The options and operands of a command line, validated against the command.
package struct ParsedArguments {
    package private(set) var operands: [String] = []
    package private(set) var wantsHelp = false
    private var values: [String: String] = [:]
    private var lists: [String: [String]] = [:]

    package init(_ arguments: [String], for command: CommandSpec) throws(UsageError) {
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
            guard let placeholder = option.value else {
                guard parts.count == 1 else { throw UsageError("\(option.name) takes no value") }
                values[option.name] = ""
                continue
            }
            if placeholder.hasPrefix("["), parts.count == 1 {
                // An optional value: the next argument is the value only if it is not an option.
                values[option.name] = rest.first.map { $0.hasPrefix("-") } ?? true ? "" : rest.popFirst()
                continue
            }
            guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
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

    package func has(_ name: String) -> Bool { values[name] != nil }

    package func string(_ name: String) -> String? { values[name] }

    /// Returns all values of an option that may occur several times.
    package func all(_ name: String) -> [String] { lists[name] ?? [] }

    package func int(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw UsageError(
                "\(name) must be a number between \(range.lowerBound) and \(range.upperBound), not '\(text)'")
        }
        return value
    }

    package func double(_ name: String, in range: ClosedRange<Double>) throws(UsageError) -> Double? {
        guard let text = values[name] else { return nil }
        guard let value = Double(text), range.contains(value) else {
            throw UsageError(
                "\(name) must be a number between \(range.lowerBound) and \(range.upperBound), not '\(text)'")
        }
        return value
    }
}
