internal import Glibc
package import Trebuchet

extension SQLiteStore: SizedStore {
    package func fileUsage() -> StoreFileUsage? {
        var (file, log) = (stat(), stat())
        var disk = statvfs()
        guard stat(path, &file) == 0, statvfs(path, &disk) == 0 else { return nil }
        // Without a log nothing is in it.
        if stat(path + "-wal", &log) != 0 { log = stat() }
        let free = UInt64(disk.f_bavail).multipliedReportingOverflow(by: UInt64(disk.f_frsize))
        return StoreFileUsage(
            bytes: Int(file.st_size) + Int(log.st_size),
            freeBytes: free.overflow ? .max : Int(clamping: free.partialValue))
    }
}
