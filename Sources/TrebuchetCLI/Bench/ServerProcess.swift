import Glibc

/// What Linux tells of a process of ours.
enum ServerProcess {
    /// Memory of a process that is in RAM, from `/proc/PID/smaps_rollup`.
    static func residentBytes(_ pid: Int32) throws -> Int {
        guard let file = fopen("/proc/\(pid)/smaps_rollup", "re") else {
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

    /// Processor time that a process has used, in nanoseconds, from `/proc/PID/schedstat` of its threads.
    static func processorTime(_ pid: Int32) throws -> Int {
        guard let stream = opendir("/proc/\(pid)/task") else {
            throw UsageError("cannot read the threads of process \(pid): \(String(cString: strerror(errno)))")
        }
        defer { closedir(stream) }
        var time = 0
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard Int(name) != nil, let file = fopen("/proc/\(pid)/task/\(name)/schedstat", "r") else { continue }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 128)
            guard fgets(&line, 128, file) != nil else { continue }
            time += Int(strtoull(line, nil, 10))
        }
        return time
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
