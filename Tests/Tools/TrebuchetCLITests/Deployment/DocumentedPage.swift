import Foundation
import TestSupport

/// The code blocks of a page in `Docs`, which tests run as documented.
struct DocumentedPage {
    private struct Block {
        let language: String
        let text: String
    }

    private let blocks: [Block]

    /// - Parameter name: `Guides/Deployment.md`.
    init(_ name: String) throws {
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/\(name)"), encoding: .utf8)
        var blocks: [Block] = []
        var language: String?
        var lines: [Substring] = []
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("```") else {
                if language != nil { lines.append(line) }
                continue
            }
            if let opened = language {
                blocks.append(Block(language: opened, text: lines.joined(separator: "\n") + "\n"))
                language = nil
            } else {
                language = String(line.dropFirst(3))
                lines = []
            }
        }
        self.blocks = blocks
    }

    /// The blocks in a language, unchanged.
    func blocks(_ language: String) -> [String] { blocks.filter { $0.language == language }.map(\.text) }
}

/// Text of the page that a test replaces, but that is no longer on the page.
struct MissingText: Error, CustomStringConvertible {
    let piece: String

    var description: String { "the page does not have '\(piece)' any more, which the test replaces" }
}

extension String {
    /// - Parameter pieces: text on the page, and its replacement.
    func filledIn(_ pieces: KeyValuePairs<String, String>) throws -> String {
        var text = self
        for (piece, value) in pieces {
            guard text.contains(piece) else { throw MissingText(piece: piece) }
            text = text.replacingOccurrences(of: piece, with: value)
        }
        return text
    }
}
