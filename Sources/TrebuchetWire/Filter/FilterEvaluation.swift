/// A filter at work on the versions of one state, in JSON. Of what has counted it keeps what tells it from others, and no text.
package struct FilterEvaluation {
    /// What a version is to those who observe through the filter.
    package enum Outcome {
        /// The condition does not hold.
        case refused
        /// It holds, and the value is the one that counted last.
        case same
        case counts
    }

    /// The part that is sent; empty for the whole state.
    package let pointer: String
    private let condition: Condition?
    /// Whether a value that is equal to the last one does not count.
    package let skipsEqual: Bool
    /// The last value that counted.
    private var last: FilterParts.Mark?

    private struct Condition {
        let pointer: String
        let comparison: StreamCondition.Comparison
        let value: FilterScalar?
        let comparesNumbersAlone: Bool
    }

    /// The filter must have been read, or its paths are pointers; one that is none finds nothing.
    package init(_ filter: StreamFilter) {
        pointer = filter.path ?? ""
        condition = filter.condition.map { condition in
            let value = condition.test.value.map { value in value.withUnsafeBytes { FilterScalar($0) } }
            return Condition(
                pointer: condition.path, comparison: condition.test.comparison, value: value,
                comparesNumbersAlone: condition.test.comparesNumbersAlone)
        }
        skipsEqual = filter.skipsEqual
    }

    /// The parts that it looks at.
    package static func pointers(of filter: StreamFilter) -> [String] {
        [filter.path, filter.condition?.path].compactMap { $0 }.filter { !$0.isEmpty }
    }

    /// Takes a version, whose parts are shared with other filters.
    package mutating func take(_ state: UnsafeRawBufferPointer, _ parts: inout FilterParts) -> Outcome {
        guard holds(for: state, &parts) else { return .refused }
        guard skipsEqual else { return .counts }
        let mark = parts.mark(of: pointer, in: state, after: last)
        if let last, last.isSame(as: mark) { return .same }
        last = mark
        return .counts
    }

    /// Whether what counted last is what has counted last with another of the same filter.
    package func isSame(as other: FilterEvaluation) -> Bool {
        guard let last, let mark = other.last else { return false }
        return last.isSame(as: mark)
    }

    private func holds(for state: UnsafeRawBufferPointer, _ parts: inout FilterParts) -> Bool {
        guard let condition else { return true }
        let part = parts.scalar(condition.pointer, of: state)
        let value = condition.value
        if condition.comparesNumbersAlone {
            guard let order = value.flatMap({ part?.numericOrder($0) }) else { return true }
            return condition.comparison.holds(for: order)
        }
        func order() -> FilterScalar.Order? { value.flatMap { part?.order($0) } }
        switch condition.comparison {
        case .exists: return part.map { !$0.isNull } ?? false
        case .nonEmpty: return part?.hasContent ?? false
        case .eq: return value.flatMap { part?.isEqual($0) } ?? false
        case .ne: return !(value.flatMap { part?.isEqual($0) } ?? false)
        case .lt: return order() == .less
        case .gt: return order() == .greater
        case .le: return order().map { $0 != .greater } ?? false
        case .ge: return order().map { $0 != .less } ?? false
        }
    }
}

extension StreamCondition.Comparison {
    /// For two values that can be compared.
    fileprivate func holds(for order: FilterScalar.Order) -> Bool {
        switch self {
        case .eq: order == .equal
        case .ne: order != .equal
        case .lt: order == .less
        case .le: order != .greater
        case .gt: order == .greater
        case .ge: order != .less
        case .exists, .nonEmpty: true
        }
    }
}
