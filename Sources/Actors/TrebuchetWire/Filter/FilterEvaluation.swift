/// The evaluation of a filter on the versions of one state, in JSON. It stores a fingerprint of the last delivered value, not its
/// text.
package struct FilterEvaluation {
    /// The result of evaluating a version.
    package enum Outcome {
        /// The condition is false.
        case refused
        /// The condition is true, and the value equals the last delivered one.
        case same
        case counts
    }

    /// The pointer to the delivered part; empty for the whole state.
    package let pointer: String
    private let condition: Condition?
    /// Whether a value that equals the last one is skipped.
    package let skipsEqual: Bool
    /// The fingerprint of the last delivered value.
    private var last: FilterOperands.Fingerprint?

    /// A parsed condition.
    private struct Condition {
        let pointer: String
        let comparison: StreamCondition.Comparison
        let value: FilterScalar?
        let comparesNumbersAlone: Bool
    }

    /// Creates an evaluation. The paths of the filter must be valid pointers, as those of a decoded filter; an invalid one finds
    /// nothing.
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

    /// Returns the pointers to the parts that a filter reads.
    package static func pointers(of filter: StreamFilter) -> [String] {
        [filter.path, filter.condition?.path].compactMap { $0 }.filter { !$0.isEmpty }
    }

    /// Evaluates a version, whose parts are shared with other filters.
    package mutating func evaluate(_ state: UnsafeRawBufferPointer, _ parts: inout FilterOperands) -> Outcome {
        guard isSatisfied(by: state, &parts) else { return .refused }
        guard skipsEqual else { return .counts }
        let mark = parts.mark(of: pointer, in: state, after: last)
        if let last, last.isSame(as: mark) { return .same }
        last = mark
        return .counts
    }

    /// Returns whether the last delivered value equals that of another evaluation of the same filter.
    package func isSame(as other: FilterEvaluation) -> Bool {
        guard let last, let mark = other.last else { return false }
        return last.isSame(as: mark)
    }

    private func isSatisfied(by state: UnsafeRawBufferPointer, _ parts: inout FilterOperands) -> Bool {
        guard let condition else { return true }
        let part = parts.scalar(condition.pointer, of: state)
        let value = condition.value
        if condition.comparesNumbersAlone {
            guard let order = value.flatMap({ part?.numericOrder($0) }) else { return true }
            return condition.comparison.isSatisfied(by: order)
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
    /// Returns whether the comparison is true for two comparable values in this order.
    fileprivate func isSatisfied(by order: FilterScalar.Order) -> Bool {
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
