internal import SwiftDiagnostics
internal import SwiftParser
internal import SwiftParserDiagnostics
internal import SwiftSyntax

/// A parsed Swift file with its source locations.
struct SourceFile {
    let path: String
    /// The module of the file, as far as the path shows it: the folder below `Sources` or `Tests`.
    let module: String
    let tree: SourceFileSyntax
    /// The modules that it imports.
    let imports: Set<String>
    private let converter: SourceLocationConverter

    init(path: String, text: String) {
        self.path = path
        module = Self.module(of: path)
        tree = Parser.parse(source: text)
        converter = SourceLocationConverter(fileName: path, tree: tree)
        imports = Set(
            tree.statements.compactMap { $0.item.as(ImportDeclSyntax.self)?.path.first?.name.text })
    }

    func location(of node: some SyntaxProtocol) -> SourcePosition {
        let location = converter.location(for: node.positionAfterSkippingLeadingTrivia)
        return SourcePosition(path: path, line: location.line, column: location.column)
    }

    /// The first location that the parser rejects, and its message.
    var parseError: (location: SourcePosition, message: String)? {
        guard tree.hasError, let first = ParseDiagnosticsGenerator.diagnostics(for: tree).first else { return nil }
        let location = converter.location(for: first.position)
        return (SourcePosition(path: path, line: location.line, column: location.column), first.message)
    }

    static func module(of path: String) -> String {
        let folders = path.split(separator: "/").dropLast().map(String.init)
        guard let root = folders.lastIndex(where: { $0 == "Sources" || $0 == "Tests" }) else { return "" }
        return root + 1 < folders.count ? folders[root + 1] : ""
    }
}

/// A location in a source file. Lines and columns (in bytes of UTF-8) count from 1.
package struct SourcePosition: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let path: String
    package let line: Int
    package let column: Int

    package static func < (one: SourcePosition, other: SourcePosition) -> Bool {
        (one.path, one.line, one.column) < (other.path, other.line, other.column)
    }

    package var description: String { "\(path):\(line):\(column)" }
}
