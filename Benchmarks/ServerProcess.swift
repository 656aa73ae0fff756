import Commands
import Glibc

/// Linux statistics of a process of this user.
struct ServerProcess {
    let pid: Int32

    /// Returns the resident memory from `/proc/PID/smaps_rollup`.
    func residentBytes() throws -> Int {
        for line in try lines("smaps_rollup") {
            let words = line.split(separator: " ")
            if words.first == "Rss:", words.count > 1, let kilobytes = Int(words[1]) { return kilobytes << 10 }
        }
        throw UsageError("process \(pid) has no Rss in smaps_rollup")
    }

    /// Returns the processor time so far in nanoseconds, from `/proc/PID/schedstat` of its threads.
    func processorTime() throws -> Int {
        try entries("task").reduce(0) { time, thread in
            // A thread that has ended meanwhile has no file any more.
            let measurements = try? lines("task/\(thread)/schedstat").first?.split(separator: " ")
            return time + (measurements?.first.flatMap { Int($0) } ?? 0)
        }
    }

    /// Returns the bytes written to disks so far, from `/proc/PID/io`.
    func writtenBytes() throws -> Int {
        for line in try lines("io") where line.hasPrefix("write_bytes: ") {
            if let bytes = Int(line.dropFirst(13).prefix { $0.isNumber }) { return bytes }
        }
        throw UsageError("process \(pid) has no write_bytes in io")
    }

    func descriptors() throws -> Int { try entries("fd").count }

    func threads() throws -> Int { try entries("task").count }

    func threadNumbers() throws -> [Int32] { try entries("task").compactMap { Int32($0) } }

    private func lines(_ name: String) throws -> [String] {
        guard let file = fopen("/proc/\(pid)/\(name)", "re") else { throw unreadable(name) }
        defer { fclose(file) }
        var lines: [String] = []
        var line = [UInt8](repeating: 0, count: 256)
        while line.withUnsafeMutableBytes({ fgets($0.baseAddress, 256, file) }) != nil {
            lines.append(String(decoding: line.prefix { $0 != 0 }, as: UTF8.self))
        }
        return lines
    }

    private func entries(_ name: String) throws -> [String] {
        guard let folder = opendir("/proc/\(pid)/\(name)") else { throw unreadable(name) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names.filter { !$0.hasPrefix(".") }
    }

    private func unreadable(_ name: String) -> UsageError {
        UsageError("cannot read \(name) of process \(pid): \(String(cString: strerror(errno)))")
    }
}
