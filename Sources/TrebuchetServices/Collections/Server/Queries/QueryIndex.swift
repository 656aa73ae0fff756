/// Finds the match lists that a change may affect, by the values of the document before and after it.
///
/// A list is indexed by one of its conditions: preferably equality, then membership in an array, then an order. A list without
/// any of these is checked for each change.
struct QueryIndex {
    /// The index entry of a list; it has several for conditions of which one must hold.
    enum Entry {
        case equal(FieldPath, JSONValue)
        case contains(FieldPath, JSONValue)
        case range(FieldPath, ValueRange)

        var field: FieldPath {
            switch self {
            case .equal(let field, _), .contains(let field, _), .range(let field, _): field
            }
        }

        fileprivate var rank: Int {
            switch self {
            case .equal: 0
            case .contains: 1
            case .range: 2
            }
        }
    }

    private struct Values {
        var equal: [JSONValue: Set<Int>] = [:]
        var contains: [JSONValue: Set<Int>] = [:]
        var ranges = ValueRanges()

        var isEmpty: Bool { equal.isEmpty && contains.isEmpty && ranges.isEmpty }

        mutating func find(_ value: JSONValue?, _ found: inout Set<Int>) {
            if !equal.isEmpty, let lists = equal[JSONOrder.identity(value)] { found.formUnion(lists) }
            if !contains.isEmpty, case .array(let elements)? = value {
                for element in elements {
                    if let lists = contains[JSONOrder.identity(element)] { found.formUnion(lists) }
                }
            }
            ranges.find(value) { found.insert($0) }
        }
    }

    private var fields: [FieldPath: Values] = [:]
    private var others: Set<Int> = []
    private var places: [Int: [Entry]] = [:]

    mutating func insert(_ number: Int, _ conditions: [QueryCondition]) {
        guard let entries = Self.entries(of: conditions) else {
            others.insert(number)
            return
        }
        places[number] = entries
        for entry in entries {
            switch entry {
            case .equal(let field, let value): fields[field, default: Values()].equal[value, default: []].insert(number)
            case .contains(let field, let value):
                fields[field, default: Values()].contains[value, default: []].insert(number)
            case .range(let field, let range): fields[field, default: Values()].ranges.insert(range, number)
            }
        }
    }

    mutating func remove(_ number: Int) {
        others.remove(number)
        for entry in places.removeValue(forKey: number) ?? [] {
            switch entry {
            case .equal(let field, let value): Self.remove(number, value, &fields[field, default: Values()].equal)
            case .contains(let field, let value): Self.remove(number, value, &fields[field, default: Values()].contains)
            case .range(let field, _): fields[field]?.ranges.remove(number)
            }
            if fields[entry.field]?.isEmpty == true { fields[entry.field] = nil }
        }
    }

    private static func remove(_ number: Int, _ value: JSONValue, _ lists: inout [JSONValue: Set<Int>]) {
        lists[value]?.remove(number)
        if lists[value]?.isEmpty == true { lists[value] = nil }
    }

    /// Finds the lists that contain a document, or may contain it.
    mutating func find(_ document: Document, _ found: inout Set<Int>) {
        // By index and in place, because a `for` loop would copy the value that is changed.
        var index = fields.startIndex
        while index != fields.endIndex {
            let value = fields.keys[index].value(in: document)
            fields.values[index].find(value, &found)
            fields.formIndex(after: &index)
        }
        found.formUnion(others)
    }

    /// Returns the entries of a list with these conditions: each of its documents is found under one of them. Nil when the list
    /// must always be checked.
    static func entries(of conditions: [QueryCondition]) -> [Entry]? {
        var best: [Entry]?
        func consider(_ entries: [Entry]) {
            let rank = entries.map(\.rank).max() ?? -1
            if let best, best.map(\.rank).max() ?? -1 <= rank { return }
            best = entries
        }
        var ranges: [FieldPath: ValueRange] = [:]
        for condition in conditions {
            switch condition.kind {
            case .field(let field, .equal, let value): consider([.equal(field, JSONOrder.identity(value))])
            case .field(let field, .isIn, .array(let values)):
                consider(values.map { .equal(field, JSONOrder.identity($0)) })
            case .field(let field, .contains, let value): consider([.contains(field, JSONOrder.identity(value))])
            case .field(let field, let comparison, let value):
                guard let range = ValueRange(comparison, value) else { continue }
                if let present = ranges[field] {
                    // No value is of two kinds at once.
                    guard let both = present.narrowed(by: range) else { return [] }
                    ranges[field] = both
                } else {
                    ranges[field] = range
                }
            case .any(let groups):
                let entries = groups.map { Self.entries(of: $0) }
                if !entries.contains(where: { $0 == nil }) { consider(entries.flatMap { $0! }) }
            }
        }
        for (field, range) in ranges { consider([.range(field, range)]) }
        return best
    }
}
