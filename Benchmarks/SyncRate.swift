import Commands
import Glibc
import Platform

/// The sync rate of a disk.
enum SyncRate {
    /// Returns how often per second one block of an existing file can be written and synced, one after the other, as SQLite
    /// writes its log.
    static func measure(_ path: String, seconds: Double) async throws -> Double {
        try await onThread {
            let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw UsageError("\(path): \(String(cString: strerror(errno)))") }
            defer { close(descriptor) }
            let block = [UInt8](repeating: 0x61, count: 4096)
            let blocks = 1_000
            for _ in 0..<blocks { _ = write(descriptor, block, block.count) }
            fsync(descriptor)
            let start = MonotonicClock.now
            var count = 0
            repeat {
                _ = pwrite(descriptor, block, block.count, count % blocks * block.count)
                fdatasync(descriptor)
                count += 1
            } while MonotonicClock.seconds(since: start) < seconds
            return Double(count) / MonotonicClock.seconds(since: start)
        }
    }
}
