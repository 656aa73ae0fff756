/// Diagrams of values over time: `a--(bc)` is a at once, and b and c three ticks later.
enum Marbles {
    /// The values of each tick. Spaces do not count.
    static func parse(_ diagram: String) -> [[String]] {
        var ticks: [[String]] = []
        var group: [String]?
        for character in diagram where character != " " {
            switch character {
            case "(": group = []
            case ")":
                ticks.append(group ?? [])
                group = nil
            case "-": ticks.append([])
            default:
                if group == nil { ticks.append([String(character)]) } else { group?.append(String(character)) }
            }
        }
        return ticks
    }

    static func draw(_ ticks: [[String]]) -> String {
        ticks.map { values in
            switch values.count {
            case 0: "-"
            case 1 where values[0].count == 1: values[0]
            default: "(\(values.joined(separator: values.contains { $0.count > 1 } ? "," : "")))"
            }
        }
        .joined()
    }
}
