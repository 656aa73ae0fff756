/// A filter at work on the versions of one state, in JSON.
package struct FilterEvaluation: Sendable {
    private let path: JSONPointer?
    private let condition: (path: JSONPointer, test: StreamCondition)?
    /// Whether a value that is equal to the last one does not count.
    package let skipsEqual: Bool
    /// The last value that counted.
    private var last: [UInt8]?

    private static let null = Array("null".utf8)

    /// The filter must have been read, or its paths are pointers; one that is none finds nothing.
    package init(_ filter: StreamFilter) {
        path = filter.path.map { JSONPointer($0) ?? JSONPointer("/\u{0}")! }
        condition = filter.condition.map { (JSONPointer($0.path) ?? JSONPointer("/\u{0}")!, $0.test) }
        skipsEqual = filter.skipsEqual
    }

    /// What is to be sent of a version; nil when it does not count.
    package mutating func take(_ state: UnsafeRawBufferPointer) -> [UInt8]? {
        if let condition, !condition.test.holds(for: Self.part(condition.path, of: state)) { return nil }
        let value: [UInt8]
        if let path {
            value = Self.part(path, of: state).map { Array($0) } ?? Self.null
        } else {
            value = Array(state)
        }
        if skipsEqual {
            if let last, Self.isEqual(last, value) { return nil }
            last = value
        }
        return value
    }

    package static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        if one == other { return true }
        return one.withUnsafeBytes { one in other.withUnsafeBytes { JSONText.isEqual(one, $0) } }
    }

    private static func part(_ path: JSONPointer, of state: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        path.lookup(in: state).map { UnsafeRawBufferPointer(rebasing: state[$0]) }
    }
}

extension StreamCondition {
    /// Whether a part is what the condition says; nil where there is none.
    func holds(for part: UnsafeRawBufferPointer?) -> Bool {
        switch comparison {
        case .exists: return part.map { !$0.equals("null") } ?? false
        case .nonEmpty: return part.map(Self.hasContent) ?? false
        case .eq: return part.map(isEqual) ?? false
        case .ne: return part.map { !isEqual($0) } ?? true
        case .lt: return order(part) == .less
        case .gt: return order(part) == .greater
        case .le: return order(part).map { $0 != .greater } ?? false
        case .ge: return order(part).map { $0 != .less } ?? false
        }
    }

    private enum Order { case less, equal, greater }

    private func isEqual(_ part: UnsafeRawBufferPointer) -> Bool {
        (value ?? []).withUnsafeBytes { JSONText.isEqual(part, $0) }
    }

    private static func hasContent(_ part: UnsafeRawBufferPointer) -> Bool {
        var cursor = JSONCursor(part)
        switch cursor.peek() {
        case 0x22: return part.count > 2
        case 0x7B, 0x5B:
            cursor.at += 1
            let next = cursor.peek()
            return next != 0x7D && next != 0x5D
        default: return false
        }
    }

    /// How a part stands to the value; nil when they cannot be compared.
    private func order(_ part: UnsafeRawBufferPointer?) -> Order? {
        guard let part, let value else { return nil }
        return value.withUnsafeBytes { value -> Order? in
            if let one = Self.text(part), let other = Self.text(value) {
                return one == other ? .equal : one.lexicographicallyPrecedes(other) ? .less : .greater
            }
            // Equal is what is equal as decimals; beyond what a Double tells apart, numbers are neither more nor less.
            if JSONText.isEqual(part, value) { return Self.number(part) == nil ? nil : .equal }
            guard let one = Self.number(part), let other = Self.number(value), one != other else { return nil }
            return one < other ? .less : .greater
        }
    }

    private static func text(_ value: UnsafeRawBufferPointer) -> [UInt8]? {
        var cursor = JSONCursor(value)
        guard cursor.peek() == 0x22, let range = try? cursor.string() else { return nil }
        return JSONName(range, in: cursor).content
    }

    private static func number(_ value: UnsafeRawBufferPointer) -> Double? {
        Double(String(decoding: value, as: UTF8.self))
    }
}
