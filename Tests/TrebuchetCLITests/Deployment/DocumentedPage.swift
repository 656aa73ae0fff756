import Foundation

/// The blocks of code of a page in `Docs`, which tests run as they stand there.
struct DocumentedPage {
    private struct Block {
        let language: String
        let text: String
    }

    private let blocks: [Block]

    /// - Parameter name: `Guides/Deployment.md`.
    init(_ name: String) throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
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

    /// The blocks in a language, as they stand there.
    func blocks(_ language: String) -> [String] { blocks.filter { $0.language == language }.map(\.text) }
}

/// What a page's file has to be changed in to be run here; a piece that is not there any more is a finding.
struct MissingPiece: Error, CustomStringConvertible {
    let piece: String

    var description: String { "the page does not have '\(piece)' any more, which the test replaces" }
}

extension String {
    /// - Parameter pieces: what stands on the page, and what is put in its place.
    func filledIn(_ pieces: KeyValuePairs<String, String>) throws -> String {
        var text = self
        for (piece, value) in pieces {
            guard text.contains(piece) else { throw MissingPiece(piece: piece) }
            text = text.replacingOccurrences(of: piece, with: value)
        }
        return text
    }
}
