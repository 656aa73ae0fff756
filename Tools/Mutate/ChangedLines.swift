import Foundation

/// The lines of the work tree that differ from a commit.
struct ChangedLines {
    private var lines: [String: Set<Int>] = [:]
    private var wholeFiles: Set<String> = []

    /// - Parameter base: a commit, or "" for the branch point from main (on main itself, the previous commit).
    init(since base: String, root: String) throws {
        let commit = try Self.commit(base, root)
        let diff = try Command(
            ["git", "diff", "-U0", "--no-color", "--no-ext-diff", commit, "--", "Sources"], in: root)
        guard diff.status == 0 else { throw Failure(description: "git diff: \(diff.output)") }
        var file = ""
        for line in diff.output.split(separator: "\n") {
            if line.hasPrefix("+++ ") { file = String(line.dropFirst("+++ b/".count)) }
            guard let match = line.firstMatch(of: #/^@@ -\S+ \+(\d+)(?:,(\d+))? @@/#), let first = Int(match.1) else {
                continue
            }
            let count = match.2.flatMap { Int($0) } ?? 1
            lines[file, default: []].formUnion(first..<(first + count))
        }
        let others = try Command(["git", "ls-files", "--others", "--exclude-standard", "--", "Sources"], in: root)
        wholeFiles = Set(others.output.split(separator: "\n").map(String.init))
    }

    var files: Set<String> { wholeFiles.union(lines.keys) }

    func contains(_ file: String, _ range: ClosedRange<Int>) -> Bool {
        wholeFiles.contains(file) || range.contains { lines[file]?.contains($0) == true }
    }

    private static func commit(_ base: String, _ root: String) throws -> String {
        func resolve(_ name: String) throws -> String? {
            let found = try Command(["git", "rev-parse", "--verify", "--quiet", name + "^{commit}"], in: root)
            return found.status == 0 ? found.output.trimmingCharacters(in: .whitespacesAndNewlines) : nil
        }
        func fork(from other: String) throws -> String? {
            let found = try Command(["git", "merge-base", "HEAD", other], in: root)
            return found.status == 0 ? found.output.trimmingCharacters(in: .whitespacesAndNewlines) : nil
        }
        if base != "" {
            guard try resolve(base) != nil else {
                throw Failure(description: "--changed: git has no commit '\(base)'")
            }
            return try fork(from: base) ?? base
        }
        let head = try resolve("HEAD")
        for main in ["main", "origin/main"] where try resolve(main) != nil {
            if let left = try fork(from: main), left != head { return left }
        }
        guard let before = try resolve("HEAD~1") else {
            throw Failure(description: "--changed: no commit to compare with; pass one with --changed=BASE")
        }
        return before
    }
}
