import Foundation
import TestSupport

/// The checkout from which this test was built.
struct Repository: Sendable {
    static let current = Result { try Repository(root: root) }

    let manifest: Manifest
    /// All Swift files under Plugins, Sources, Benchmarks and Tests, and of the examples.
    let files: [SourceText]
    /// The names of the folders there, one for each target; Benchmarks is a target as a whole.
    let folders: Set<String>

    static let root = packageRoot

    private init(root: URL) throws {
        manifest = Manifest(try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8))
        var files: [SourceText] = []
        var folders: Set<String> = []
        func list(_ folder: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
                // File names contain a dot.
                .filter { !$0.contains(".") }.map { "\(folder)/\($0)" }
        }
        // An example that a script runs has none.
        let examples = try list("Examples").map { $0 + "/Sources" }
            .filter { FileManager.default.fileExists(atPath: root.appending(path: $0).path) }
        // The C code beside the benchmarks is a separate target in their folder.
        let bare = try list("Benchmarks").filter {
            FileManager.default.fileExists(atPath: root.appending(path: $0).appending(path: "include").path)
        }
        // A fixture that is a package has its tests in it.
        let fixtureTests = try list("Tests/Fixtures").map { $0 + "/Tests" }
            .filter { FileManager.default.fileExists(atPath: root.appending(path: $0).path) }
        let targets =
            try ["Benchmarks"] + bare
            + (["Plugins", "Tools"] + list("Sources") + list("Tests") + examples + fixtureTests).flatMap(list)
            // These are in Python.
            .filter { !["Tools/Alerts", "Tools/Attacks"].contains($0) }
        for target in targets {
            folders.insert(String(target.split(separator: "/").last ?? ""))
            let base = root.appending(path: target)
            let paths = FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
            // Only the last steps of a catalog's code are compiled, as tests.
            for path in paths.sorted() where path.hasSuffix(".swift") && !path.contains(".docc/") {
                let text = try String(contentsOf: base.appending(path: path), encoding: .utf8)
                files.append(SourceText(path: "\(target)/\(path)", text))
            }
        }
        self.files = files
        self.folders = folders
    }
}
