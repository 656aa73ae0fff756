import Foundation

/// The checkout that this test was built from.
struct Repository: Sendable {
    static let current = Result { try Repository(root: root) }

    let manifest: Manifest
    /// All Swift files under Plugins, Sources, Benchmarks and Tests, and of the examples.
    let files: [SourceText]
    /// The names of the folders there, one for each target; Benchmarks is one itself.
    let folders: Set<String>

    static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private init(root: URL) throws {
        manifest = Manifest(try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8))
        var files: [SourceText] = []
        var folders: Set<String> = []
        func list(_ folder: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
                // Files have a dot in their names.
                .filter { !$0.contains(".") }.map { "\(folder)/\($0)" }
        }
        // One that is run by a script has none.
        let examples = try list("Examples").map { $0 + "/Sources" }
            .filter { FileManager.default.fileExists(atPath: root.appending(path: $0).path) }
        // What benchmarks stand beside is in C, and a target of its own in their folder.
        let bare = try list("Benchmarks").filter {
            FileManager.default.fileExists(atPath: root.appending(path: $0).appending(path: "include").path)
        }
        let targets =
            try ["Benchmarks"] + bare
            + (["Plugins", "Sources", "Tests", "Tests/Fixtures", "Tools"] + examples).flatMap(list).filter {
                $0 != "Tests/Fixtures"
            }
        for target in targets {
            folders.insert(String(target.split(separator: "/").last ?? ""))
            let base = root.appending(path: target)
            let paths = FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
            // Of a catalog's code the last steps alone are compiled, as tests.
            for path in paths.sorted() where path.hasSuffix(".swift") && !path.contains(".docc/") {
                let text = try String(contentsOf: base.appending(path: path), encoding: .utf8)
                files.append(SourceText(path: "\(target)/\(path)", text))
            }
        }
        self.files = files
        self.folders = folders
    }
}
