/// A range of numbers or of strings, with one or two ends. It may include slightly more than its condition: of long strings only
/// the beginning counts.
struct ValueRange: Sendable {
    let kind: JSONOrder.Kind
    /// Nil for no end.
    var lower: JSONValue?
    var upper: JSONValue?

    /// Creates the range of a condition; nil when the condition does not define one.
    init?(_ comparison: QueryCondition.Comparison, _ value: JSONValue) {
        kind = JSONOrder.kind(value)
        let value = JSONOrder.placing(value)
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

/// Numbered ranges. Insertion, removal and each step of a search take a time that grows with the logarithm of their count.
///
/// They are in one tree for each kind, sorted by the lower ends and balanced by random priorities. Each range has the highest
/// upper end of its subtree, so that a search skips subtrees which end before the value.
struct ValueRanges {
    /// The position of a range in the order of its tree.
    struct Position {
        fileprivate let lower: JSONValue?
        fileprivate let serial: Int

        fileprivate func precedes(_ other: Position) -> Bool {
            let order = JSONOrder.compare(lower, other.lower)
            return order == 0 ? serial < other.serial : order < 0
        }
    }

    private struct Node {
        let range: ValueRange
        let number: Int
        /// Distinguishes ranges with the same lower end.
        let serial: Int
        let priority = UInt64.random(in: 0 ... .max)
        var left = ValueRanges.none
        var right = ValueRanges.none
        /// The highest upper end of the subtree; nil when one of its ranges has no upper end.
        var highest: JSONValue?

        var position: Position { Position(lower: range.lower, serial: serial) }
    }

    private static let none = -1

    /// The tree nodes; their slots are used again.
    private var nodes: [Node] = []
    private var unused: [Int] = []
    private var roots: [JSONOrder.Kind: Int] = [:]
    /// The nodes of each number.
    private var places: [Int: [Int]] = [:]
    private var lastSerial = 0

    var isEmpty: Bool { places.isEmpty }

    mutating func insert(_ range: ValueRange, _ number: Int) {
        lastSerial += 1
        let node = Node(range: range, number: number, serial: lastSerial, highest: range.upper)
        let place = unused.popLast() ?? nodes.count
        if place == nodes.count { nodes.append(node) } else { nodes[place] = node }
        places[number, default: []].append(place)
        roots[range.kind] = insert(place, into: roots[range.kind] ?? Self.none)
    }

    mutating func remove(_ number: Int) {
        for place in places.removeValue(forKey: number) ?? [] {
            let kind = nodes[place].range.kind
            let root = remove(place, from: roots[kind] ?? Self.none)
            roots[kind] = root == Self.none ? nil : root
            unused.append(place)
        }
        if places.isEmpty { (nodes, unused) = ([], []) }
    }

    /// Calls `body` with the numbers of all ranges that contain the value.
    func find(_ value: JSONValue?, _ body: (Int) -> Void) {
        _ = find(value, after: nil) { number in
            if let number { body(number) }
            return true
        }
    }

    /// Calls `body` with each visited range: the number of a range that contains the value, else nil. Ends when `body` returns
    /// false.
    ///
    /// - Parameter position: the end of an earlier search, which this one continues.
    /// - Returns: the position at which `body` has returned false; nil at the end.
    func find(_ value: JSONValue?, after position: Position?, _ body: (_ number: Int?) -> Bool) -> Position? {
        guard let value, let root = roots[JSONOrder.kind(value)] else { return nil }
        return find(value, in: root, after: position, body)
    }

    private func find(_ value: JSONValue, in root: Int, after start: Position?, _ body: (Int?) -> Bool) -> Position? {
        guard root != Self.none else { return nil }
        if let highest = nodes[root].highest, JSONOrder.compare(highest, value) < 0 { return nil }
        let (range, position) = (nodes[root].range, nodes[root].position)
        let isNew = start.map { $0.precedes(position) } ?? true
        if isNew, let end = find(value, in: nodes[root].left, after: start, body) { return end }
        // All ranges on the right begin after the value too.
        if let lower = range.lower, JSONOrder.compare(lower, value) > 0 { return nil }
        if isNew, !body(range.contains(value) ? nodes[root].number : nil) { return position }
        return find(value, in: nodes[root].right, after: start, body)
    }

    // MARK: Tree

    /// Returns the root of the tree with the node.
    private mutating func insert(_ place: Int, into root: Int) -> Int {
        guard root != Self.none else { return place }
        if nodes[place].position.precedes(nodes[root].position) {
            let left = insert(place, into: nodes[root].left)
            nodes[root].left = left
            if nodes[left].priority > nodes[root].priority {
                nodes[root].left = nodes[left].right
                nodes[left].right = root
                updateHighest(root)
                updateHighest(left)
                return left
            }
        } else {
            let right = insert(place, into: nodes[root].right)
            nodes[root].right = right
            if nodes[right].priority > nodes[root].priority {
                nodes[root].right = nodes[right].left
                nodes[right].left = root
                updateHighest(root)
                updateHighest(right)
                return right
            }
        }
        updateHighest(root)
        return root
    }

    /// Returns the root of the tree without the node.
    private mutating func remove(_ place: Int, from root: Int) -> Int {
        guard root != Self.none else { return root }
        if root == place { return joined(nodes[place].left, nodes[place].right) }
        if nodes[place].position.precedes(nodes[root].position) {
            nodes[root].left = remove(place, from: nodes[root].left)
        } else {
            nodes[root].right = remove(place, from: nodes[root].right)
        }
        updateHighest(root)
        return root
    }

    /// Joins two trees, of which all ranges of the first one come first; returns the root.
    private mutating func joined(_ one: Int, _ other: Int) -> Int {
        guard one != Self.none, other != Self.none else { return max(one, other) }
        if nodes[one].priority > nodes[other].priority {
            nodes[one].right = joined(nodes[one].right, other)
            updateHighest(one)
            return one
        }
        nodes[other].left = joined(one, nodes[other].left)
        updateHighest(other)
        return other
    }

    private mutating func updateHighest(_ root: Int) {
        var highest = nodes[root].range.upper
        for child in [nodes[root].left, nodes[root].right] where child != Self.none {
            guard let present = highest, let other = nodes[child].highest else {
                highest = nil
                break
            }
            if JSONOrder.compare(present, other) < 0 { highest = other }
        }
        nodes[root].highest = highest
    }
}
