#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// The way to a file, through the links on it.
enum LinkedPath {
    /// As many links as the system follows.
    private static let linkLimit = 40

    /// The path of the file itself, without links; of what is not there, as it would be. Nil when the links lead in a circle.
    ///
    /// - Parameter step: called for each name on the way with its folder, before it is looked up there. `isLast` says that the name
    ///   is that of the file, or of a link to it.
    static func resolve(
        _ path: String, step: (_ folder: String, _ name: String, _ isLast: Bool) -> Void = { _, _, _ in }
    ) -> String? {
        var folder = "/"
        // The next name is the last.
        var rest = names(in: path)
        if !path.hasPrefix("/") { rest += names(in: currentFolder) }
        var links = 0
        while let name = rest.popLast() {
            if name == ".." {
                folder = parent(of: folder)
                continue
            }
            step(folder, name, rest.isEmpty)
            let place = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
            guard let target = target(of: place) else {
                folder = place
                continue
            }
            links += 1
            guard links <= linkLimit else { return nil }
            if target.hasPrefix("/") { folder = "/" }
            rest += names(in: target)
        }
        return folder
    }

    /// The last one first.
    private static func names(in path: String) -> [String] {
        path.split(separator: "/").reversed().filter { $0 != "." }.map(String.init)
    }

    private static func parent(of folder: String) -> String {
        guard let slash = folder.lastIndex(of: "/"), slash != folder.startIndex else { return "/" }
        return String(folder[..<slash])
    }

    private static var currentFolder: String {
        guard let folder = getcwd(nil, 0) else { return "/" }
        defer { free(folder) }
        return String(cString: folder)
    }

    /// Nil for what is no link.
    private static func target(of path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink(path, start, Int(PATH_MAX))
            guard count > 0 else { return nil }
            start[count] = 0
            return String(cString: start)
        }
    }
}
