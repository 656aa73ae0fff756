import Trebuchet

/// A table in aligned columns, without characters that a terminal interprets.
struct TextTable {
    private var rows: [[String]]

    init(_ head: [String]) { rows = [head] }

    mutating func addRow(_ cells: [String]) { rows.append(cells.map { LogLine.of($0) }) }

    var lines: [String] {
        var widths = [Int](repeating: 0, count: rows[0].count)
        for row in rows { Self.widen(&widths, for: row) }
        return rows.map { Self.line($0, widths) }
    }

    /// Returns its first row, and widens the columns as necessary.
    func line(widened widths: inout [Int]) -> String {
        Self.widen(&widths, for: rows[0])
        return Self.line(rows[0], widths)
    }

    private static func widen(_ widths: inout [Int], for row: [String]) {
        for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) }
    }

    private static func line(_ row: [String], _ widths: [Int]) -> String {
        var line = ""
        for (cell, width) in zip(row, widths) {
            line += cell + String(repeating: " ", count: width - cell.count + 2)
        }
        return String(line.reversed().drop { $0 == " " }.reversed())
    }
}
