internal import Foundation

/// The Swift files of folders.
enum SwiftSources {
    /// Reads all Swift files at and below the paths, each once, except hidden files and build folders.
    static func read(_ paths: [String]) throws(GenerateFailure) -> [(path: String, text: String)] {
        var found: [(path: String, text: String)] = []
        var seen: Set<String> = []
        for path in paths {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
                throw .failed("'\(path)' does not exist")
            }
            let files = isFolder.boolValue ? try swiftFiles(below: path) : [path]
            for file in files where seen.insert(URL(filePath: file).resolvingSymlinksInPath().path).inserted {
                found.append((path: file, text: try text(of: file)))
            }
        }
        if found.isEmpty { throw .failed("no Swift files in \(paths.joined(separator: ", "))") }
        return found
    }

    private static func swiftFiles(below folder: String) throws(GenerateFailure) -> [String] {
        let base = folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        guard let entries = FileManager.default.enumerator(atPath: folder) else {
            throw .failed("'\(folder)' cannot be read")
        }
        return entries.compactMap { $0 as? String }.filter { path in
            path.hasSuffix(".swift")
                && !path.split(separator: "/").contains {
                    $0.hasPrefix(".") || $0.hasSuffix(".docc") || $0 == "node_modules"
                }
        }.map { "\(base)/\($0)" }
    }

    private static func text(of path: String) throws(GenerateFailure) -> String {
        guard let bytes = FileManager.default.contents(atPath: path) else { throw .failed("'\(path)' cannot be read") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .failed("'\(path)' is not UTF-8") }
        return text
    }
}
