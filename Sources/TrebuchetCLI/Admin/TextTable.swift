import Trebuchet

/// Rows for people: columns that stand below each other, without what a terminal would take for commands.
struct TextTable {
    private var rows: [[String]]

    init(_ head: [String]) { rows = [head] }

    mutating func add(_ cells: [String]) { rows.append(cells.map { LogLine.of($0) }) }

    var lines: [String] {
        let widths = rows.reduce(into: [Int](repeating: 0, count: rows[0].count)) { widths, row in
            for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) }
        }
        return rows.map { row in
            var line = ""
            for (cell, width) in zip(row, widths) {
                line += cell + String(repeating: " ", count: width - cell.count + 2)
            }
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}
