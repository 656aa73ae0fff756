import Glibc

/// What Linux tells of a process of ours.
enum ServerProcess {
    /// Memory of a process that is in RAM, from `/proc/PID/smaps_rollup`.
    static func residentBytes(_ pid: Int32) throws -> Int {
        guard let file = fopen("/proc/\(pid)/smaps_rollup", "r") else {
            throw UsageError("cannot read the memory of process \(pid): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                .split(separator: " ")
            if words.first == "Rss:", words.count > 1, let kilobytes = Int(words[1]) { return kilobytes << 10 }
        }
        throw UsageError("process \(pid) has no Rss in smaps_rollup")
    }

    /// Entries of a folder: of `/proc/PID/fd` its descriptors, of `/proc/PID/task` its threads.
    static func entries(of folder: String) throws -> Int {
        guard let stream = opendir(folder) else {
            throw UsageError("cannot read \(folder): \(String(cString: strerror(errno)))")
        }
        defer { closedir(stream) }
        var count = 0
        while readdir(stream) != nil { count += 1 }
        // Without itself and the folder above it.
        return count - 2
    }
}
