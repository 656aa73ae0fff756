/// The match lists of a collection's queries, and an index that finds the lists that a change affects.
///
/// It is used in its collection's isolation only.
struct MatchLists {
    /// The maximum number of indexed fields; conditions on other fields scan all documents.
    private static let maximumFields = 16

    /// The data of the ended lists.
    struct DiscardedLists: Sendable {
        fileprivate let rows: DocumentRows
        fileprivate let lists: [RowList]
        fileprivate let fields: [FieldIndex.Key: FieldIndex]
    }

    /// A change that some lists do not include yet.
    private struct UnappliedChange {
        let change: DocumentRows.Change
        /// The indexes of fields that do not include the change.
        var fields: [FieldIndex.Key]
        /// The searches for the lists of the document before and after the change.
        var searches: [QueryIndex.Search]
        /// The numbers of the lists that may be affected; those of the last search are added at its end.
        var lists: [Int] = []
        var cache = ConditionCache()
        /// The evaluation of the last of the lists, if it has taken longer than a time slice.
        var evaluation: ConditionEvaluation?
        /// The effect on the last of the lists, which some of its queries do not include yet.
        var effect: MatchList.Change?
    }

    private(set) var rows: DocumentRows
    private var unapplied: UnappliedChange?
    private var lists: [MatchList.Key: MatchList] = [:]
    private var byNumber: [Int: MatchList] = [:]
    private var index = QueryIndex()
    private var lastNumber = 0
    private var fields: [FieldIndex.Key: FieldIndex] = [:]
    /// The number of lists that could use the index of a field.
    private var fieldUses: [FieldIndex.Key: Int] = [:]

    init(_ documents: some Collection<Document>) { rows = DocumentRows(documents) }

    var count: Int { lists.count }
    /// For tests.
    var all: some Collection<MatchList> { lists.values }
    /// For tests.
    var fieldCount: Int { fields.count }

    /// Returns the list for the key, created when there is none, with one more user. The caller scans the documents in turns.
    mutating func acquireList(
        _ key: MatchList.Key, mayRead: @escaping @Sendable (Document) -> Bool
    ) -> MatchList {
        if let present = lists[key] {
            present.users += 1
            return present
        }
        lastNumber += 1
        let equality = Self.equality(in: key)
        var slots: [Int]?
        // An index that does not include a change yet would miss its document.
        if let equality, let field = fields[equality.index], field.isComplete, unapplied?.fields.isEmpty ?? true {
            slots = field.slots(of: equality.hashes)
        }
        let list = MatchList(key, number: lastNumber, slots: slots, mayRead: mayRead)
        list.users = 1
        lists[key] = list
        byNumber[lastNumber] = list
        index.insert(lastNumber, key.conditions)
        if let equality { fieldUses[equality.index, default: 0] += 1 }
        return list
    }

    /// Removes a user. Returns the number to remove the list with if it is still unused then; nil when it has other users.
    func release(_ list: MatchList) -> Int? {
        list.users -= 1
        guard list.users == 0 else { return nil }
        list.left += 1
        return list.left
    }

    mutating func removeIfUnused(_ number: Int, since left: Int) {
        guard let list = byNumber[number], list.users == 0, list.left == left else { return }
        lists[list.key] = nil
        byNumber[list.number] = nil
        index.remove(list.number)
        guard let field = Self.equality(in: list.key)?.index, let uses = fieldUses[field] else { return }
        fieldUses[field] = uses > 1 ? uses - 1 : nil
        if uses == 1 { fields[field] = nil }
    }

    /// Returns the index of a field that a new list could use, because another list has needed it too.
    func index(for key: MatchList.Key) -> FieldIndex.Key? {
        guard lists[key] == nil, let index = Self.equality(in: key)?.index, fieldUses[index] != nil,
            fields[index] != nil || fields.count < Self.maximumFields
        else { return nil }
        return index
    }

    func hasIndex(_ key: FieldIndex.Key) -> Bool { fields[key] != nil }

    mutating func removeIndex(_ key: FieldIndex.Key) { fields[key] = nil }

    /// Builds an index of ``index(for:)``. Returns true when nothing is left to do.
    mutating func continueIndexing(
        _ index: FieldIndex.Key, mayRead: @escaping @Sendable (Document) -> Bool, _ slice: inout ScanSlice
    ) -> Bool {
        fields[index, default: FieldIndex(index.field, mayRead: mayRead)].continueIndexing(rows, &slice)
    }

    func continueScan(_ list: MatchList, _ slice: inout ScanSlice) -> Bool { list.continueScan(rows, &slice) }

    /// True while some lists do not include a change that others include.
    var isApplying: Bool { unapplied != nil }

    /// Applies a change to all lists, and calls `body` with those that it affects.
    mutating func apply(_ change: DocumentChange, _ body: (MatchList, MatchList.Change) -> Void) {
        beginApplying(change)
        while true {
            var slice = ScanSlice()
            let isDone = continueApplying(&slice) { list, change, _ in
                body(list, change)
                return true
            }
            if isDone { return }
        }
    }

    /// Begins to apply a change; ``continueApplying(_:_:)`` must complete it before the next one, and before a scan.
    mutating func beginApplying(_ change: DocumentChange) {
        guard let change = rows.apply(change) else { return }
        guard !lists.isEmpty else { return }
        let rows = [change.before, change.after].compactMap { $0 }
        unapplied = UnappliedChange(
            change: change, fields: Array(fields.keys), searches: rows.map { QueryIndex.Search($0) })
    }

    /// Applies the change for a time slice; returns true when all lists and their queries include it.
    ///
    /// - Parameter body: applies the effect on a list to its queries, and returns true when all of them include it. Otherwise it is
    ///   called again with the same effect.
    mutating func continueApplying(
        _ slice: inout ScanSlice, _ body: (MatchList, MatchList.Change, inout ScanSlice) -> Bool
    ) -> Bool {
        guard var change = unapplied else { return true }
        unapplied = nil
        guard updateFields(&change, &slice), search(&change, &slice) else {
            unapplied = change
            return false
        }
        while let number = change.lists.last {
            if let list = byNumber[number] {
                if change.effect == nil {
                    guard let isMatch = list.matches(change.change, &change.evaluation, &change.cache, &slice) else {
                        unapplied = change
                        return false
                    }
                    change.effect = list.apply(change.change, isMatch: isMatch)
                }
                if let effect = change.effect, !body(list, effect, &slice) {
                    unapplied = change
                    return false
                }
            }
            (change.evaluation, change.effect) = (nil, nil)
            change.lists.removeLast()
            if slice.isOver(after: change.change.after), !change.lists.isEmpty {
                unapplied = change
                return false
            }
        }
        return true
    }

    /// Applies a change to the indexes of fields; returns true when all include it.
    private mutating func updateFields(_ change: inout UnappliedChange, _ slice: inout ScanSlice) -> Bool {
        while let key = change.fields.popLast() {
            fields[key]?.apply(change.change)
            if slice.isOver(after: change.change.after ?? change.change.before), !change.fields.isEmpty { return false }
        }
        return true
    }

    /// Searches the lists that a change may affect; returns true when all are found.
    private func search(_ change: inout UnappliedChange, _ slice: inout ScanSlice) -> Bool {
        guard !change.searches.isEmpty else { return true }
        for place in change.searches.indices {
            guard index.resume(&change.searches[place], &slice) else { return false }
        }
        let found = change.searches.dropFirst().reduce(into: change.searches[0].found) { $0.formUnion($1.found) }
        (change.lists, change.searches) = (Array(found), [])
        return true
    }

    /// Empties the lists and returns their data, which can be freed elsewhere because that takes a while.
    mutating func removeAll() -> DiscardedLists {
        let all = DiscardedLists(rows: rows, lists: lists.values.map(\.rows), fields: fields)
        (rows, lists, byNumber, fields, fieldUses) = (DocumentRows([]), [:], [:], [:], [:])
        (index, unapplied) = (QueryIndex(), nil)
        return all
    }

    /// Returns the index for a lookup, with the hashes to look up.
    private static func equality(in key: MatchList.Key) -> (index: FieldIndex.Key, hashes: [Int])? {
        for condition in key.conditions {
            switch condition.kind {
            case .field(let field, .equal, let value):
                return (FieldIndex.Key(field: field, reader: key.reader), [ValueHash.of(value)])
            case .field(let field, .isIn, .array(let values)):
                return (FieldIndex.Key(field: field, reader: key.reader), values.map { ValueHash.of($0) })
            default: continue
            }
        }
        return nil
    }
}
