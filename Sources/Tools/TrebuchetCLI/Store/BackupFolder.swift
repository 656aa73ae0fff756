import Foundation
import Glibc
import TrebuchetStore

/// A folder with backups of a file, whose names have their times: `trebuchet-20260501T030000Z.db`. Files with other names are left
/// alone.
struct BackupFolder {
    private static let suffix = ".db"

    private let path: String
    /// The beginning of the names: the name of the file without its suffix.
    private let stem: String

    /// Returns nil if `path` is not a folder.
    init?(_ path: String, of file: String) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
        self.path = path.hasSuffix("/") ? path : path + "/"
        let name = file.split(separator: "/").last.map(String.init) ?? file
        stem = name.hasSuffix(Self.suffix) ? String(name.dropLast(Self.suffix.count)) : name
    }

    /// Returns the path of a backup that begins now.
    func newPath(at time: Date = Date()) -> String {
        var seconds = time_t(time.timeIntervalSince1970)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 32)
        strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
        let digits = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return "\(path)\(stem)-\(digits)\(Self.suffix)"
    }

    /// The names of the backups of the file, the oldest first.
    private var names: [String] { allNames.filter { isBackup($0) }.sorted() }

    private var allNames: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }

    private func isBackup(_ name: String) -> Bool {
        name.hasPrefix(stem + "-") && name.dropFirst(stem.count + 1).wholeMatch(of: /[0-9]{8}T[0-9]{6}Z\.db/) != nil
    }

    /// Removes all backups of the file but the newest ones, and incomplete ones that ended processes have left.
    ///
    /// - Returns: the paths of the removed backups.
    func removeAll(butNewest count: Int) -> [String] {
        for name in allNames where name.hasSuffix(".partial") && isBackup(String(name.dropLast(8))) {
            StoreCopy.removeIncomplete(of: path + name.dropLast(8))
        }
        return names.dropLast(count).map { path + $0 }.filter { unlink($0) == 0 }
    }
}
