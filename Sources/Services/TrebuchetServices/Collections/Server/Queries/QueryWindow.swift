internal import Trebuchet

internal import Trebuchet

/// The part of a match list that a query shows: after its cursor, up to its limit, and within the bytes of a result, but at
/// least one document. Pure.
struct QueryWindow {
    private let order: [QueryOrder]
    private let cursor: QueryCursor?
    private let limit: Int
    private let maximumBytes: Int
    private let counts: Bool
    /// The number of matches before it.
    private var start = 0
    /// The number of shown documents, and their bytes.
    private(set) var count = 0
    private var bytes = 0
    /// The values that the last result had in addition to the documents.
    private(set) var matches: Int?
    private(set) var hasMore = false

    init(_ query: CollectionQuery, maximumBytes: Int) throws(CollectionError) {
        order = query.order
        cursor = try query.start
        limit = query.limit ?? .max
        counts = query.includesCount
        self.maximumBytes = maximumBytes
    }

    /// Computes the first window; returns its documents.
    @discardableResult
    mutating func computeFirstWindow(in rows: RowList) -> [Document] {
        start = startIndex(in: rows)
        var shown: [Document] = []
        for row in rows.rows(from: start) {
            guard hasRoom(for: row) else { break }
            (count, bytes) = (count + 1, bytes + row.byteCount)
            shown.append(row.document)
        }
        recordRows(rows)
        return shown
    }

    /// Returns the whole result.
    func result(in rows: RowList) -> QueryResult {
        var result = QueryResult()
        result.documents = KeyedCollection(rows.rows(from: start).prefix(count).map(\.document))
        (result.count, result.hasMore) = (matches, hasMore)
        return result
    }

    /// Returns the change of the result for a change of the list; nil for none.
    mutating func apply(_ change: MatchList.Change, in rows: RowList) -> ResultChange? {
        let from = change.removed.flatMap { visibleIndex($0.index - start) }
        start = startIndex(in: rows)
        let to = change.inserted.flatMap { visibleIndex($0.index - start) }
        var steps: [ResultChange.Step] = []
        if from != nil, let to, let removed = change.removed?.row, let row = change.inserted?.row {
            bytes += row.byteCount - removed.byteCount
            steps.append(.update(row.document, at: to))
        } else {
            if from != nil, let row = change.removed?.row {
                (count, bytes) = (count - 1, bytes - row.byteCount)
                steps.append(.remove(row.document.id))
            }
            // A row after the last shown one is added below with the others, if there is room.
            if let to, to < count, let row = change.inserted?.row {
                (count, bytes) = (count + 1, bytes + row.byteCount)
                steps.append(.insert(row.document, at: to))
            }
        }
        while count > 1, count > limit || bytes > maximumBytes { steps.append(.remove(removeLast(rows).id)) }
        while start + count < rows.count, case let row = rows[start + count], hasRoom(for: row) {
            steps.append(.insert(row.document, at: count))
            (count, bytes) = (count + 1, bytes + row.byteCount)
        }
        let (oldMatches, hadMore) = (matches, hasMore)
        recordRows(rows)
        guard !steps.isEmpty || matches != oldMatches || hasMore != hadMore else { return nil }
        return ResultChange(steps: steps, count: matches, hasMore: hasMore)
    }

    private func visibleIndex(_ place: Int) -> Int? { (0..<count).contains(place) ? place : nil }

    private func hasRoom(for row: DocumentRow) -> Bool {
        count < limit && (count == 0 || bytes + row.byteCount <= maximumBytes)
    }

    private mutating func removeLast(_ rows: RowList) -> Document {
        let row = rows[start + count - 1]
        (count, bytes) = (count - 1, bytes - row.byteCount)
        return row.document
    }

    private mutating func recordRows(_ rows: RowList) {
        matches = counts ? rows.count : nil
        hasMore = rows.count - start > count
    }

    /// The number of documents that a change of the list is compared with, as steps of a time slice.
    func steps(in rows: RowList) -> Int { cursor == nil ? 1 : 1 + Int.bitWidth - rows.count.leadingZeroBitCount }

    private func startIndex(in rows: RowList) -> Int {
        guard let cursor else { return 0 }
        return rows.index(
            of: rows.position(of: SortKey(cursor, in: order)) { !cursor.precedes($0.document, in: order) })
    }
}
