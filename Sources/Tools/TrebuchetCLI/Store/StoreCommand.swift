import Commands
import Platform
import Trebuchet
import TrebuchetStore

/// `trebuchet store`: examines the file of a store.
enum StoreCommand {
    static let spec = CommandSpec(
        name: "store",
        summary: "check the file of a store",
        subcommands: [check],
        discussion: "'trebuchet backup' copies the file, 'trebuchet restore' creates it from a copy.",
        run: { _ in })

    private static let check = CommandSpec(
        name: "store check",
        summary: "check the whole file of a store, and print its content by kind",
        operands: "<file>",
        operandCount: 1...1,
        discussion: """
            Only reads the file, also while a server uses it. Prints the format, and for each kind of data the number of values,
            logs and changes, and their size. Rows that cannot be read are named on standard error; then it exits with 1.
              trebuchet store check trebuchet.db
            """,
        run: { arguments in
            let file = try StoreOperand.file(arguments.operands[0])
            let report = try await onThread { () throws(StateStoreError) in
                try StoreReport(of: file) { percent, bytes in
                    StoreOperand.report("store check", "checking", file, percent, bytes)
                }
            }
            for line in lines(of: report) { Console.print(line) }
            for problem in report.damage { Console.error(LogLine.of("\(file): \(problem)")) }
            guard report.damageCount > 0 else { return }
            if report.damageCount > report.damage.count {
                Console.error("\((report.damageCount - report.damage.count).counted("further problem"))")
            }
            throw FailedCheck(count: report.damageCount)
        })

    static func lines(of report: StoreReport) -> [String] {
        func size(_ bytes: Int) -> String { TopMetricsView.bytes(Double(bytes)) }
        var lines = [
            "\(report.path): schema \(report.schema)"
                + (report.schema < report.supportedSchema
                    ? " (migrated to \(report.supportedSchema) at its next start)" : "")
                + ", \(size(report.fileBytes)), of which \(size(report.freeBytes)) are free"
                + (report.logBytes > 0 ? "; \(size(report.logBytes)) in the log" : "")
                + "; opened \(report.generation.counted("time"))"
        ]
        guard !report.kinds.isEmpty else { return lines + ["no data"] }
        var table = TextTable(["KIND", "VALUES", "LOGS", "CHANGES", "SIZE"])
        for kind in report.kinds {
            table.addRow([
                kind.name, "\(kind.values)", "\(kind.logs)", "\(kind.changes)", size(kind.bytes),
            ])
        }
        lines += table.lines
        return lines + [report.damageCount == 0 ? "no problem" : report.damageCount.counted("problem")]
    }
}
