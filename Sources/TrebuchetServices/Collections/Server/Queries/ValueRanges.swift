/// A range of numbers or of strings, with one or two ends. It may include slightly more than its condition.
struct ValueRange: Sendable {
    let kind: JSONOrder.Kind
    /// Nil for no end.
    var lower: JSONValue?
    var upper: JSONValue?

    /// Creates the range of a condition; nil when the condition does not define one.
    init?(_ comparison: QueryCondition.Comparison, _ value: JSONValue) {
        kind = JSONOrder.kind(value)
        guard kind == .number || kind == .text else { return nil }
        switch comparison {
        case .less, .lessOrEqual: upper = value
        case .greater, .greaterOrEqual: lower = value
        case .prefix:
            lower = value
            upper = Self.upperBound(ofPrefix: value)
        default: return nil
        }
    }

    /// Returns the first string after all strings with the prefix; nil when there is none.
    private static func upperBound(ofPrefix value: JSONValue) -> JSONValue? {
        guard case .string(let text) = value else { return nil }
        var scalars = Array(text.unicodeScalars)
        while let last = scalars.popLast() {
            // UTF-8 bytes sort like scalars; the surrogates are no scalars.
            let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
            guard let scalar = Unicode.Scalar(next) else { continue }
            scalars.append(scalar)
            var end = String.UnicodeScalarView()
            end.append(contentsOf: scalars)
            return .string(String(end))
        }
        return nil
    }

    /// Returns the intersection; nil when the kinds differ.
    func narrowed(by other: ValueRange) -> ValueRange? {
        guard kind == other.kind else { return nil }
        var both = self
        if let low = other.lower, lower.map({ JSONOrder.compare($0, low) < 0 }) ?? true { both.lower = low }
        if let high = other.upper, upper.map({ JSONOrder.compare($0, high) > 0 }) ?? true { both.upper = high }
        return both
    }

    func contains(_ value: JSONValue) -> Bool {
        JSONOrder.kind(value) == kind && (lower.map { JSONOrder.compare($0, value) <= 0 } ?? true)
            && (upper.map { JSONOrder.compare(value, $0) <= 0 } ?? true)
    }
}

/// Numbered ranges. The ranges that contain a value are found in a time that grows with the logarithm of their count and with
/// the number of hits.
struct ValueRanges {
    private struct Entry {
        let range: ValueRange
        let number: Int
        /// The highest end of this entry and its subtree; the root of a tree is its middle element.
        var highest: JSONValue?
    }

    private var ranges: [Int: [ValueRange]] = [:]
    /// One tree for each kind, sorted by the lower ends; nil when they must be sorted again.
    private var trees: [JSONOrder.Kind: [Entry]]?

    var isEmpty: Bool { ranges.isEmpty }

    mutating func insert(_ range: ValueRange, _ number: Int) {
        ranges[number, default: []].append(range)
        trees = nil
    }

    mutating func remove(_ number: Int) {
        ranges[number] = nil
        trees = nil
    }

    mutating func find(_ value: JSONValue?, _ body: (Int) -> Void) {
        guard let value, !ranges.isEmpty else { return }
        if trees == nil { sort() }
        guard let tree = trees?[JSONOrder.kind(value)] else { return }
        Self.find(value, in: tree[...], body)
    }

    private static func find(_ value: JSONValue, in tree: ArraySlice<Entry>, _ body: (Int) -> Void) {
        guard !tree.isEmpty else { return }
        let middle = (tree.startIndex + tree.endIndex) / 2
        let entry = tree[middle]
        if let highest = entry.highest, JSONOrder.compare(highest, value) < 0 { return }
        find(value, in: tree[..<middle], body)
        if let lower = entry.range.lower, JSONOrder.compare(lower, value) > 0 { return }
        if entry.range.contains(value) { body(entry.number) }
        find(value, in: tree[(middle + 1)...], body)
    }

    private mutating func sort() {
        var trees = Dictionary(
            grouping: ranges.flatMap { number, ranges in ranges.map { Entry(range: $0, number: number) } }
        ) { $0.range.kind }
        for kind in Array(trees.keys) {
            var tree = trees[kind]!.sorted { JSONOrder.compare($0.range.lower, $1.range.lower) < 0 }
            _ = Self.updateHighest(&tree, 0..<tree.count)
            trees[kind] = tree
        }
        self.trees = trees
    }

    /// Sets and returns the highest end of a part; the inner value is nil when a range has no end.
    private static func updateHighest(_ tree: inout [Entry], _ part: Range<Int>) -> JSONValue?? {
        guard !part.isEmpty else { return .none }
        let middle = (part.lowerBound + part.upperBound) / 2
        var highest = tree[middle].range.upper
        for below in [
            updateHighest(&tree, part.lowerBound..<middle), updateHighest(&tree, middle + 1..<part.upperBound),
        ] {
            guard case .some(let other) = below else { continue }
            guard let present = highest, let other else {
                highest = nil
                continue
            }
            if JSONOrder.compare(present, other) < 0 { highest = other }
        }
        tree[middle].highest = highest
        return .some(highest)
    }
}
