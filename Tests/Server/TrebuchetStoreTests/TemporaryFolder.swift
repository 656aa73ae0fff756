import Glibc

/// A folder for one test, removed with the object.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template = Array("/tmp/trebuchet-store-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw CreationFailed(errno: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    struct CreationFailed: Error { let errno: Int32 }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        rmdir(path)
    }

    func file(_ name: String = "data.db") -> String { "\(path)/\(name)" }

    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

/// Reads and writes whole files.
enum FileBytes {
    static func read(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "r") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while case let count = fread(&part, 1, part.count, file), count > 0 { bytes += part[..<count] }
        return bytes
    }

    static func write(_ bytes: [UInt8], _ path: String) {
        guard let file = fopen(path, "w") else { return }
        defer { fclose(file) }
        fwrite(bytes, 1, bytes.count, file)
    }
}
