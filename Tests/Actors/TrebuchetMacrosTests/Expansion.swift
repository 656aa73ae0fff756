import SwiftDiagnostics
import SwiftParser
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros

/// Source text with Trebuchet's macros expanded, and their diagnostics.
struct Expansion {
    struct Finding {
        let message: String
        /// The token of the diagnostic, and its line, from 1.
        let token: String
        let line: Int
        let notes: [String]
        /// The title of each fix-it and the whole source with it applied.
        let fixes: [(title: String, source: String)]
    }

    let text: String
    let findings: [Finding]

    init(_ source: String) {
        let file = Parser.parse(source: source)
        let context = BasicMacroExpansionContext(
            sourceFiles: [file: .init(moduleName: "Test", fullFilePath: "Test.swift")])
        let specs = [
            "Trebuchet": MacroSpec(type: TrebuchetMacro.self, conformances: ["TrebuchetActor", "StreamingActor"]),
            "StreamedState": MacroSpec(type: StreamedStateMacro.self),
            "StreamedEvents": MacroSpec(type: StreamedEventsMacro.self),
            "Idempotent": MacroSpec(type: IdempotentMacro.self),
            "Redacted": MacroSpec(type: RedactedMacro.self),
            "HTTP": MacroSpec(type: HTTPMacro.self),
            "Wire": MacroSpec(type: WireMacro.self, conformances: ["Decodable", "Encodable", "_WireValue"]),
        ]
        let expanded = file.expand(macroSpecs: specs) { node in
            BasicMacroExpansionContext(sharingWith: context, lexicalContext: node.allMacroLexicalContexts())
        }
        text = expanded.description
        findings = context.diagnostics.map { diagnostic in
            let location = context.location(for: diagnostic.position, anchoredAt: diagnostic.node, fileName: "")
            let token = file.token(at: AbsolutePosition(utf8Offset: location.offset))
            return Finding(
                message: diagnostic.message, token: token?.text ?? "", line: location.line,
                notes: diagnostic.notes.map(\.message),
                fixes: diagnostic.fixIts.map { fix in
                    (fix.message.message, Self.apply(fix, to: source, in: context))
                })
        }
    }

    /// The lines of the expansion without indentation and blank lines.
    var lines: [String] { Self.lines(of: text) }

    /// True if the lines of `part` occur consecutively in the expansion.
    func contains(_ part: String) -> Bool {
        "\n\(lines.joined(separator: "\n"))\n".contains("\n\(Self.lines(of: part).joined(separator: "\n"))\n")
    }

    static func lines(of text: String) -> [String] {
        text.split(separator: "\n").map { line in
            String(line.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }.filter { !$0.isEmpty }
    }

    private static func apply(_ fix: FixIt, to source: String, in context: BasicMacroExpansionContext) -> String {
        var bytes = Array(source.utf8)
        for change in fix.changes {
            guard case .replace(let old, let new) = change else { continue }
            let start = context.location(for: old.position, anchoredAt: old, fileName: "").offset
            bytes.replaceSubrange(start..<start + old.totalLength.utf8Length, with: new.description.utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
