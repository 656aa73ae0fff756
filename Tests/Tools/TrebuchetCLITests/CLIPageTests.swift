import Commands
import Foundation
import TestSupport
import Testing

@testable import TrebuchetCLI

/// Compares the commands and options in Docs/Reference/CLI.md with those of the parser.
@Suite struct CLIPageTests {
    private struct Option: Hashable, CustomStringConvertible {
        let name: String
        let takesValue: Bool

        var description: String { takesValue ? "\(name) VALUE" : name }

        /// - Parameter head: `--port PORT`, as in the first cell of a row.
        init(_ head: Substring) {
            name = String(head.prefix { $0 != " " })
            takesValue = head.contains(" ")
        }

        init(_ spec: OptionSpec) {
            name = spec.name
            takesValue = spec.value != nil
        }
    }

    /// The tables under one heading.
    private struct Section {
        /// The options column of each command, by the command's name.
        var commands: [String: String] = [:]
        var options: Set<Option> = []
    }

    /// The sections of the page by their anchors.
    private static func sections() throws -> [String: Section] {
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/Reference/CLI.md"), encoding: .utf8)
        var sections: [String: Section] = [:]
        var anchor = ""
        for line in page.split(separator: "\n") {
            if line.hasPrefix("## ") {
                anchor = line.dropFirst(3).lowercased().replacingOccurrences(of: " ", with: "-")
                sections[anchor] = Section()
            }
            guard line.hasPrefix("| `") else { continue }
            // A bar in a cell is escaped with a backslash.
            let cells = String(line).replacingOccurrences(of: "\\|", with: "/").split(separator: "|")
            // A row may have several commands with the same options, or several options.
            for head in cells[0].matches(of: /`([^`]+)`/).map(\.output.1) {
                if head.hasPrefix("trebuchet ") {
                    let words = head.split(separator: " ").dropFirst().prefix { word in
                        word.allSatisfy { $0.isLowercase || $0 == "-" }
                    }
                    sections[anchor]?.commands[words.joined(separator: " ")] = String(cells[1])
                } else if head.hasPrefix("--") {
                    sections[anchor]?.options.insert(Option(head))
                }
            }
        }
        return sections
    }

    @Test("the page has each command once, with the options that the parser accepts, and no others")
    func page() throws {
        let sections = try Self.sections()
        let commands = CommandLineTool.commands.flatMap { $0.subcommands.isEmpty ? [$0] : $0.subcommands }
        #expect(sections.values.flatMap(\.commands.keys).sorted() == commands.map(\.name).sorted())
        var used: [String: Set<Option>] = [:]
        for command in commands {
            guard let (anchor, section) = sections.first(where: { $0.value.commands[command.name] != nil }),
                let cell = section.commands[command.name]
            else { continue }
            var shown = Set(cell.matches(of: /`(--[^`]+)`/).map { Option($0.output.1) })
            if cell.contains("all options") { shown = section.options }
            if !section.options.isEmpty {
                #expect(shown.isSubset(of: section.options), "\(command.name): options without a row in the section")
            }
            used[anchor, default: []].formUnion(shown)
            for link in cell.matches(of: /\(#([a-z\-]+)\)/) {
                let group = String(link.output.1)
                let options = try #require(sections[group], "no section #\(group)").options
                used[group, default: []].formUnion(options)
                shown.formUnion(options)
            }
            #expect(shown == Set(command.options.map { Option($0) }), "\(command.name)")
        }
        for (anchor, section) in sections {
            #expect(section.options.subtracting(used[anchor, default: []]).isEmpty, "unused options in #\(anchor)")
        }
    }

    /// The text of an option in the page: names of options, variables and quoted texts are code.
    private static func markdown(_ text: String) -> String {
        text.replacing(/'([^']+)'|(--[a-z][a-z\-]*)|(TREBUCHET_\w+)/) { match in
            "`\(match.output.1 ?? match.output.2 ?? match.output.3 ?? "")`"
        }
        .replacing(/Docs\/(Guides|Reference)\/(\w+)\.md/) { match in
            "[\(match.output.2)](\(match.output.1 == "Guides" ? "../Guides/" : "")\(match.output.2).md)"
        }
    }

    @Test("the table of serve has the options of the parser with their texts, in the same order")
    func serveTable() throws {
        let page = try String(contentsOf: packageRoot.appending(path: "Docs/Reference/CLI.md"), encoding: .utf8)
        let section = try #require(
            page.components(separatedBy: "\n## serve\n").last?.components(separatedBy: "\n## ").first)
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `--") }.map { String($0) }
        let expected = ServeOptions.all.map { "| `\($0.head)` | \(Self.markdown($0.help)) |" }
        for (index, row) in expected.enumerated() where index >= rows.count || rows[index] != row {
            Issue.record("row \(index + 1) must be: \(row)")
        }
        #expect(rows.count == expected.count)
    }
}
