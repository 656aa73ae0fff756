/// A command line that cannot be understood.
struct UsageError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The options and operands of a command line, checked against what the command takes.
struct ParsedArguments {
    private(set) var operands: [String] = []
    private(set) var wantsHelp = false
    private var values: [String: String] = [:]
    private var lists: [String: [String]] = [:]

    init(_ arguments: [String], for command: CommandSpec) throws(UsageError) {
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
            guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
                throw UsageError("\(option.name) needs a value: \(option.name) \(placeholder)")
            }
            values[option.name] = value
            lists[option.name, default: []].append(value)
        }
        guard !wantsHelp else { return }
        guard command.operandCount.contains(operands.count) else {
            throw UsageError("\(operands.count) operand(s) given\n\(command.usage)")
        }
    }

    private static func unknown(_ name: String, _ command: CommandSpec) -> UsageError {
        let names = command.options.map(\.name) + ["--help"]
        let hint = NearestMatch.find(name, in: names).map { "; did you mean \($0)?" } ?? ""
        return UsageError("unknown option \(name)\(hint)\n\(command.usage)")
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    func string(_ name: String) -> String? { values[name] }

    /// What was given each time, for an option that may be there several times.
    func all(_ name: String) -> [String] { lists[name] ?? [] }

    func int(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw UsageError(
                "\(name) must be a number between \(range.lowerBound) and \(range.upperBound), not '\(text)'")
        }
        return value
    }

    func double(_ name: String, in range: ClosedRange<Double>) throws(UsageError) -> Double? {
        guard let text = values[name] else { return nil }
        guard let value = Double(text), range.contains(value) else {
            throw UsageError(
                "\(name) must be a number between \(range.lowerBound) and \(range.upperBound), not '\(text)'")
        }
        return value
    }
}

/// What somebody probably meant.
enum NearestMatch {
    /// The candidate with the fewest edits, if they are few enough to be a slip.
    static func find(_ word: String, in candidates: [String]) -> String? {
        let best = candidates.map { ($0, distance(word, $0)) }.min { $0.1 < $1.1 }
        guard let (candidate, edits) = best, edits <= max(2, word.count / 3) else { return nil }
        return candidate
    }

    /// Levenshtein's distance: insertions, deletions and replacements of single characters.
    static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let replaced = diagonal + (a == b ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[right.count]
    }
}
