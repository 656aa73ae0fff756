/// The options of a command line, one after the other.
package struct ToolOptions {
    private var rest: ArraySlice<String>
    /// The last result of `next`.
    private var option = ""

    package init(_ arguments: [String]) { rest = arguments[...] }

    /// The next option; nil at the end.
    package mutating func next() -> String? {
        guard let next = rest.popFirst() else { return nil }
        option = next
        return next
    }

    /// The value of the option.
    package mutating func value() throws(WrongUse) -> String {
        guard let value = rest.popFirst(), !value.hasPrefix("--") else { throw WrongUse("\(option) needs a value") }
        return value
    }

    package mutating func number(_ range: ClosedRange<Int>) throws(WrongUse) -> Int {
        let text = try value()
        if let number = Int(text), range.contains(number) { return number }
        throw WrongUse(
            "\(option) must be a number between \(range.lowerBound) and \(range.upperBound), not '\(text)'")
    }

    /// The error for an unknown option.
    package var unknown: WrongUse { WrongUse("unknown option '\(option)'") }
}

/// An error in the command line.
package struct WrongUse: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
