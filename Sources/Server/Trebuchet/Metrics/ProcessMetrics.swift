internal import Glibc

/// Operating system metrics of this process, by the names that all Prometheus clients use.
package struct ProcessMetrics {
    /// Processor time of all threads, user and system, in seconds.
    package let processorSeconds: Double
    package let residentBytes: Int
    package let virtualBytes: Int
    package let openFiles: Int
    /// The maximum number of open files; nil if unlimited.
    package let maximumOpenFiles: Int?
    /// The start time in seconds since 1970.
    package let started: Double
    package let threads: Int

    /// Reads the metrics; nil if `/proc` does not provide them.
    package static func read() -> ProcessMetrics? {
        // The program name is in parentheses and may itself contain spaces and parentheses.
        guard let stat = file("/proc/self/stat"), let end = stat.lastIndex(of: ")"),
            let boot = file("/proc/stat")?.split(separator: "\n").first(where: { $0.hasPrefix("btime ") })
        else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 21, let began = Double(boot.dropFirst("btime ".count)) else { return nil }
        func field(_ number: Int) -> Double { Double(fields[number - 3]) ?? 0 }
        let ticks = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return ProcessMetrics(
            processorSeconds: (field(14) + field(15)) / ticks,
            residentBytes: Int(field(24)) * sysconf(Int32(_SC_PAGESIZE)), virtualBytes: Int(field(23)),
            openFiles: entries("/proc/self/fd"),
            maximumOpenFiles: limit.rlim_cur > UInt64(Int.max) ? nil : Int(limit.rlim_cur),
            started: began + field(22) / ticks, threads: Int(field(20)))
    }

    /// Reads a small file of `/proc`, whose contents the kernel generates at each read.
    private static func file(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4_096)
        while bytes.count < 1 << 20 {
            let count = Glibc.read(descriptor, &part, part.count)
            guard count > 0 else { break }
            bytes += part[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func entries(_ path: String) -> Int {
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        // Do not count the descriptor of this directory, `.` and `..`.
        var count = -3
        while readdir(folder) != nil { count += 1 }
        return max(0, count)
    }
}
