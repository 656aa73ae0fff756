/// A sorted list of rows in pieces. Search, insertion and removal take about as long among a hundred thousand rows as among a
/// thousand. Each row has the beginning of its sort position as a number, so that most comparisons do not read documents.
struct RowList {
    struct Position: Equatable {
        let piece: Int
        let offset: Int
    }

    private struct Entry {
        let row: DocumentRow
        let key: SortKey
    }

    static let maximumPieceCount = 512
    /// The bytes of a row, without its document.
    static let rowBytes = MemoryLayout<Entry>.stride

    /// No piece is empty.
    private var pieces: [[Entry]] = []
    private(set) var count = 0

    /// Returns the row at an index; traps beyond the end.
    subscript(index: Int) -> DocumentRow {
        let place = position(at: index)
        return pieces[place.piece][place.offset].row
    }

    func row(at place: Position) -> DocumentRow? {
        guard place.piece < pieces.count, place.offset < pieces[place.piece].count else { return nil }
        return pieces[place.piece][place.offset].row
    }

    /// Returns the place of the first row for which `isBefore` is false; the end of a piece is the beginning of the next.
    ///
    /// - Parameter isBefore: must be true for all rows up to one, and false for all after it.
    func position(_ isBefore: (DocumentRow) -> Bool) -> Position {
        position { (entry: Entry) in isBefore(entry.row) }
    }

    /// Returns the place of a row with this key.
    ///
    /// - Parameter isBefore: as above, called for rows with the same key.
    func position(of key: SortKey, _ isBefore: (DocumentRow) -> Bool) -> Position {
        position { (entry: Entry) in entry.key == key ? isBefore(entry.row) : entry.key < key }
    }

    private func position(_ isBefore: (Entry) -> Bool) -> Position {
        var (low, high) = (0, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(pieces[middle][pieces[middle].count - 1]) { low = middle + 1 } else { high = middle }
        }
        guard low < pieces.count else { return Position(piece: low, offset: 0) }
        let piece = low
        (low, high) = (0, pieces[piece].count - 1)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(pieces[piece][middle]) { low = middle + 1 } else { high = middle }
        }
        return Position(piece: piece, offset: low)
    }

    func index(of place: Position) -> Int {
        pieces[..<place.piece].reduce(place.offset) { $0 + $1.count }
    }

    private func position(at index: Int) -> Position {
        var rest = index
        for piece in pieces.indices {
            if rest < pieces[piece].count { return Position(piece: piece, offset: rest) }
            rest -= pieces[piece].count
        }
        preconditionFailure("row \(index) of \(count) does not exist")
    }

    /// Returns the rows from an index on.
    func rows(from index: Int) -> some Sequence<DocumentRow> {
        let start = index < count ? position(at: index) : Position(piece: pieces.count, offset: 0)
        return pieces[start.piece...].enumerated().lazy
            .flatMap { $0.offset == 0 ? $0.element[start.offset...] : $0.element[...] }.map(\.row)
    }

    /// Inserts a row before the one at a place.
    mutating func insert(_ row: DocumentRow, key: SortKey = SortKey(0), at place: Position) {
        count += 1
        let row = Entry(row: row, key: key)
        guard !pieces.isEmpty else {
            pieces.append([row])
            return
        }
        var (piece, offset) = (place.piece, place.offset)
        if piece == pieces.count {
            piece -= 1
            offset = pieces[piece].count
        }
        pieces[piece].insert(row, at: offset)
        guard pieces[piece].count > Self.maximumPieceCount else { return }
        // Rows mostly arrive in order, so a piece that has grown at its end is split near its end.
        let half = offset == pieces[piece].count - 1 ? Self.maximumPieceCount * 15 / 16 : Self.maximumPieceCount / 2
        let rest = Array(pieces[piece][half...])
        pieces[piece].removeSubrange(half...)
        pieces.insert(rest, at: piece + 1)
    }

    mutating func remove(at place: Position) {
        count -= 1
        pieces[place.piece].remove(at: place.offset)
        let left = pieces[place.piece].count
        guard left < Self.maximumPieceCount / 8 else { return }
        if left == 0 {
            pieces.remove(at: place.piece)
        } else if place.piece + 1 < pieces.count, left + pieces[place.piece + 1].count <= Self.maximumPieceCount / 2 {
            join(place.piece)
        } else if place.piece > 0, left + pieces[place.piece - 1].count <= Self.maximumPieceCount / 2 {
            join(place.piece - 1)
        }
    }

    /// Joins a piece with the next one.
    private mutating func join(_ piece: Int) {
        let next = pieces.remove(at: piece + 1)
        pieces[piece] += next
    }

    /// For tests.
    var pieceCounts: [Int] { pieces.map(\.count) }
}
