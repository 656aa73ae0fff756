import Foundation
import TestSupport

/// Compares the tables of a page in Docs that list the settings of a type with the settings.
package struct DocumentedTable {
    /// Settings without a row, or with another default, and rows without a setting.
    package private(set) var problems: [String] = []
    /// The number of settings.
    package let count: Int

    /// Reads the section of a page whose heading has the type's name.
    ///
    /// - Parameters:
    ///   - value: made by the type's initializer without arguments.
    ///   - page: its path below Docs.
    ///   - special: the text of computed defaults.
    package init(of value: Any, in page: String, special: [String: String] = [:]) throws {
        let docs = packageRoot.appending(path: "Docs")
        let text = try String(contentsOf: docs.appending(path: page), encoding: .utf8)
        let type = String(describing: type(of: value))
        let section = text.split(separator: "\n## ").first { section in
            section.prefix { $0 != "\n" }.contains("`\(type)`")
        }
        self.init(of: value, in: section ?? "", special: special)
    }

    /// Reads rows like "| `name` | 16 MiB | … |", or "| `name` / `other` | 16 MiB / 4 KiB | … |".
    package init(of value: Any, in section: Substring, special: [String: String] = [:]) {
        let type = String(describing: type(of: value))
        var rows: [String: String] = [:]
        for line in section.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count > 1 else { continue }
            let names = cells[0].components(separatedBy: " / ").map { $0.filter { $0 != "`" } }
            let defaults = cells[1].components(separatedBy: " / ")
            guard names.count == defaults.count else {
                problems.append("\(type): \(names.count) settings have \(defaults.count) defaults: \(cells[0])")
                continue
            }
            for (name, text) in zip(names, defaults) where rows.updateValue(text, forKey: name) != nil {
                problems.append("\(type).\(name) has two rows")
            }
        }
        let settings = DocumentedSetting.all(of: value)
        count = settings.count
        for setting in settings {
            let expected = special[setting.path] ?? Self.text(of: setting.value, named: setting.path)
            guard let row = rows.removeValue(forKey: setting.path) else {
                problems.append("\(type).\(setting.path) has no row; its default is \(expected)")
                continue
            }
            if row != expected { problems.append("\(type).\(setting.path) is \(expected), not \(row)") }
        }
        problems += rows.keys.sorted().map { "\(type) has no setting \($0)" }
    }

    /// A default in the form of a table.
    private static func text(of value: Any, named name: String) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional {
            return mirror.children.first.map { text(of: $0.value, named: name) } ?? "none"
        }
        if mirror.displayStyle == .dictionary, mirror.children.isEmpty { return "none" }
        switch value {
        case let count as Int: return isSize(name) ? bytes(count) : grouped(count)
        case let time as Duration: return text(of: time)
        default: return rate(mirror) ?? "\(value)"
        }
    }

    private static func isSize(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.contains("byte") || name.hasSuffix("size") || name.hasPrefix("memory.")
    }

    private static func bytes(_ count: Int) -> String {
        if count % (1 << 20) == 0 { return "\(count >> 20) MiB" }
        return count % (1 << 10) == 0 ? "\(count >> 10) KiB" : "\(count) bytes"
    }

    private static func grouped(_ count: Int) -> String {
        var text = ""
        for (place, digit) in "\(count)".reversed().enumerated() {
            text = "\(digit)" + (place > 0 && place % 3 == 0 ? "," : "") + text
        }
        return text
    }

    private static func text(of time: Duration) -> String {
        let milliseconds = Int(time / .milliseconds(1))
        let days = milliseconds / 86_400_000
        if days > 0, milliseconds % 86_400_000 == 0 { return days == 1 ? "1 day" : "\(days) days" }
        if milliseconds >= 120_000, milliseconds % 60_000 == 0 { return "\(milliseconds / 60_000) minutes" }
        return milliseconds % 1_000 == 0 ? "\(milliseconds / 1_000) s" : "\(milliseconds) ms"
    }

    private static func rate(_ mirror: Mirror) -> String? {
        let parts = Dictionary(
            mirror.children.map { ($0.label ?? "", $0.value) }, uniquingKeysWith: { first, _ in first })
        guard let rate = parts["callsPerSecond"] as? Double, let burst = parts["burst"] as? Int else { return nil }
        let often =
            rate >= 1
            ? "\(grouped(Int(rate))) per second"
            : "1 per \(text(of: .milliseconds(Int((1_000 / rate).rounded()))))"
        return "\(often), burst \(grouped(burst))"
    }
}
