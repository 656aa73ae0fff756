import Foundation

/// The checkout that this test was built from.
struct Repository: Sendable {
    static let current = Result { try Repository(root: root) }

    let manifest: Manifest
    /// All Swift files under Plugins, Sources and Tests, and of the examples.
    let files: [SourceText]
    /// The names of the folders there, one for each target.
    let folders: Set<String>

    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private init(root: URL) throws {
        manifest = Manifest(try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8))
        var files: [SourceText] = []
        var folders: Set<String> = []
        let examples = ["todos-web", "chat-web"].map { "Examples/\($0)/Sources" }
        for top in ["Plugins", "Sources", "Tests"] + examples {
            for folder in try FileManager.default.contentsOfDirectory(atPath: root.appending(path: top).path)
            // Files have a dot in their names.
            where !folder.contains(".") {
                folders.insert(folder)
                let base = root.appending(path: top).appending(path: folder)
                let paths = FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
                for path in paths.sorted() where path.hasSuffix(".swift") {
                    let text = try String(contentsOf: base.appending(path: path), encoding: .utf8)
                    files.append(SourceText(path: "\(top)/\(folder)/\(path)", text))
                }
            }
        }
        self.files = files
        self.folders = folders
    }
}
