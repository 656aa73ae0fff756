import Foundation
import Mutations

/// The outcomes of a run, as a table and with a diff for each survivor.
struct Report {
    struct Line {
        let module: String
        let mutant: Mutant
        let change: LineChange
        let outcome: Outcome?
        /// The reason in the list of equivalent mutants.
        let reason: String?
    }

    let lines: [Line]

    var survivors: [Line] {
        lines.filter { line in
            line.reason == nil && (line.outcome?.kind == .survived || line.outcome?.kind == .unreached)
        }
    }

    var table: String {
        func row(_ cells: [String]) -> String {
            cells.enumerated().map { index, cell in
                let space = String(repeating: " ", count: max(0, (index == 0 ? 34 : 12) - cell.count))
                return index == 0 ? cell + space : space + cell
            }.joined()
        }
        func row(_ name: String, _ lines: [Line]) -> String {
            let counted = lines.filter { $0.reason == nil && $0.outcome != nil }
            func count(_ kinds: Outcome.Kind...) -> Int {
                counted.count { line in kinds.contains { $0 == line.outcome?.kind } }
            }
            let noticed = count(.expectation, .crash, .waiting)
            let rate = counted.isEmpty ? "-" : String(format: "%.1f %%", 100 * Double(noticed) / Double(counted.count))
            return row(
                [name]
                    + [
                        counted.count, count(.expectation), count(.crash), count(.waiting), count(.survived),
                        count(.unreached), lines.count { $0.reason != nil },
                    ].map(String.init) + [rate])
        }
        let head = row([
            "", "mutants", "expectation", "crash", "waiting", "survived", "unreached", "equivalent", "detected",
        ])
        let modules = Dictionary(grouping: lines, by: \.module).sorted { $0.key < $1.key }.map { row($0.key, $0.value) }
        let kinds = Dictionary(grouping: lines, by: \.mutant.kind.rawValue).sorted { $0.key < $1.key }
            .map { row($0.key, $0.value) }
        return ([head] + modules + [row("all", lines)] + [""] + kinds).joined(separator: "\n")
    }

    static func heading(_ line: Line) -> String {
        "\(line.mutant.file):\(line.mutant.line) \(line.mutant.function): \(line.mutant.kind.rawValue)"
    }
}
