#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// Resolves the symbolic links on a path.
enum SymlinkResolution {
    /// The maximum number of links, equal to that of the system.
    private static let linkLimit = 40

    /// Returns the path of the file itself, without links; for a missing file, the path where it would be. Nil when
    /// the links form a cycle.
    ///
    /// - Parameter step: called for each name on the path with its folder, before it is looked up there. `isLast` is
    ///   true for the name of the file, or of a link to it.
    static func resolve(
        _ path: String, step: (_ folder: String, _ name: String, _ isLast: Bool) -> Void = { _, _, _ in }
    ) -> String? {
        var folder = "/"
        // The next name is at the end.
        var remaining = names(in: path)
        if !path.hasPrefix("/") { remaining += names(in: currentFolder) }
        var links = 0
        while let name = remaining.popLast() {
            if name == ".." {
                folder = parent(of: folder)
                continue
            }
            step(folder, name, remaining.isEmpty)
            let entry = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
            guard let target = target(of: entry) else {
                folder = entry
                continue
            }
            links += 1
            guard links <= linkLimit else { return nil }
            if target.hasPrefix("/") { folder = "/" }
            remaining += names(in: target)
        }
        return folder
    }

    /// Returns the names in reverse order.
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

    /// Returns the target of a link, nil if the path is not a link.
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
