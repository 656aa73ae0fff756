#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The amount of memory that is available to this process.
package enum PhysicalMemory {
    /// The bytes of physical memory, or the limit of the process's control group if that is lower.
    package static let bytes: Int = {
        let machine = max(1 << 30, sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
        guard let file = fopen("/sys/fs/cgroup/memory.max", "re") else { return machine }
        defer { fclose(file) }
        var text = [UInt8](repeating: 0, count: 32)
        let count = fread(&text, 1, text.count, file)
        // The file contains "max" when there is no limit.
        let digits = String(decoding: text[..<count].prefix { (0x30...0x39).contains($0) }, as: UTF8.self)
        return min(machine, Int(digits) ?? machine)
    }()
}
