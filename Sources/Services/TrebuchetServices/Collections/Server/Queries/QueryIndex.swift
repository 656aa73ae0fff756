/// Finds the match lists that a change may affect, by the values of the document before and after it.
///
/// A list is indexed by one of its conditions: preferably equality, then membership in an array, then an order. A list without
/// any of these is checked for each change.
struct QueryIndex {
    /// The index entry of a list; it has several for conditions of which one must hold.
    enum Entry {
        /// With the hash of the value.
        case equal(FieldPath, Int)
        case contains(FieldPath, Int)
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

    /// The entries of one field.
    private struct Field {
        let path: FieldPath
        /// Distinguishes it from an earlier field in its slot.
        let serial: Int
        /// By the hashes of values.
        var equal: [Int: Set<Int>] = [:]
        var contains: [Int: Set<Int>] = [:]
        var ranges = ValueRanges()

        var isEmpty: Bool { equal.isEmpty && contains.isEmpty && ranges.isEmpty }
    }

    /// A search for the lists that contain a document, or may contain it. It is done in several parts, between which lists may be
    /// added and removed.
    struct Search {
        fileprivate enum Stage {
            case begin
            /// The elements of an array, from an index of its text on.
            case elements(from: Int)
            case ranges(after: ValueRanges.Position?)
        }

        let row: DocumentRow
        /// The lists, at the end with those that are always checked.
        fileprivate(set) var found: Set<Int> = []
        /// The slot of the field to search next, and the field of a search in progress.
        fileprivate var slot = 0
        fileprivate var serial = 0
        /// The number or string to compare with ranges, without most of a long string.
        fileprivate var value: JSONValue?
        fileprivate var stage = Stage.begin

        init(_ row: DocumentRow) { self.row = row }
    }

    /// In slots, so that a search can be continued.
    private var fields: [Field?] = []
    private var slots: [FieldPath: Int] = [:]
    private var unused: [Int] = []
    private var lastSerial = 0
    private var others: Set<Int> = []
    private var places: [Int: [Entry]] = [:]

    mutating func insert(_ number: Int, _ conditions: [QueryCondition]) {
        guard let entries = Self.entries(of: conditions) else {
            others.insert(number)
            return
        }
        places[number] = entries
        for entry in entries {
            let slot = slots[entry.field] ?? addField(entry.field)
            switch entry {
            case .equal(_, let hash): fields[slot]?.equal[hash, default: []].insert(number)
            case .contains(_, let hash): fields[slot]?.contains[hash, default: []].insert(number)
            case .range(_, let range): fields[slot]?.ranges.insert(range, number)
            }
        }
    }

    private mutating func addField(_ path: FieldPath) -> Int {
        lastSerial += 1
        let slot = unused.popLast() ?? fields.count
        if slot == fields.count { fields.append(nil) }
        fields[slot] = Field(path: path, serial: lastSerial)
        slots[path] = slot
        return slot
    }

    mutating func remove(_ number: Int) {
        others.remove(number)
        for entry in places.removeValue(forKey: number) ?? [] {
            guard let slot = slots[entry.field] else { continue }
            switch entry {
            case .equal(_, let hash): Self.remove(number, hash, &fields[slot]!.equal)
            case .contains(_, let hash): Self.remove(number, hash, &fields[slot]!.contains)
            case .range: fields[slot]?.ranges.remove(number)
            }
            guard fields[slot]?.isEmpty == true else { continue }
            fields[slot] = nil
            slots[entry.field] = nil
            unused.append(slot)
        }
        if slots.isEmpty { (fields, unused) = ([], []) }
    }

    private static func remove(_ number: Int, _ hash: Int, _ lists: inout [Int: Set<Int>]) {
        lists[hash]?.remove(number)
        if lists[hash]?.isEmpty == true { lists[hash] = nil }
    }

    /// Searches for a time slice; returns true when all lists are found.
    func resume(_ search: inout Search, _ slice: inout ScanSlice) -> Bool {
        while search.slot < fields.count {
            if let field = fields[search.slot] {
                if case .begin = search.stage { search.serial = field.serial }
                // A list that was added during the search needs no change that it was added after.
                guard search.serial != field.serial || resume(&search, in: field, &slice) else { return false }
            }
            (search.slot, search.stage, search.value) = (search.slot + 1, .begin, nil)
            if slice.isOver(after: search.row) { return false }
        }
        search.found.formUnion(others)
        return true
    }

    private func resume(_ search: inout Search, in field: Field, _ slice: inout ScanSlice) -> Bool {
        if case .begin = search.stage {
            search.stage = .ranges(after: nil)
            let lists = field.path.withText(in: search.row.document) { text in
                if !field.contains.isEmpty, text.map({ JSONOrder.kind($0) == .array }) == true {
                    search.stage = .elements(from: 1)
                }
                if !field.ranges.isEmpty { search.value = JSONOrder.placing(text: text) }
                return field.equal.isEmpty ? nil : field.equal[ValueHash.of(text)]
            }
            if let lists {
                search.found.formUnion(lists)
                if slice.isOver(afterSteps: lists.count) { return false }
            }
        }
        if case .elements(let start) = search.stage {
            let rest = field.path.withText(in: search.row.document) { text in
                text.flatMap { array in
                    CanonicalJSON.elements(of: array, from: start) { element in
                        let lists = field.contains[ValueHash.of(element)]
                        if let lists { search.found.formUnion(lists) }
                        return !slice.isOver(afterSteps: 1 + (lists?.count ?? 0))
                    }
                }
            }
            search.stage = rest.map { .elements(from: $0) } ?? .ranges(after: nil)
            if rest != nil { return false }
        }
        guard case .ranges(let position) = search.stage, !field.ranges.isEmpty else { return true }
        let end = field.ranges.find(search.value, after: position) { number in
            if let number { search.found.insert(number) }
            return !slice.isOver(afterSteps: 1)
        }
        guard let end else { return true }
        search.stage = .ranges(after: end)
        return false
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
            case .field(let field, .equal, let value): consider([.equal(field, ValueHash.of(value))])
            case .field(let field, .isIn, .array(let values)):
                consider(values.map { .equal(field, ValueHash.of($0)) })
            case .field(let field, .contains, let value): consider([.contains(field, ValueHash.of(value))])
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
