import Commands
import Glibc
import Platform

/// The disk's own limit.
enum SyncRate {
    /// How often a second one block of a file is written and is on the disk, each before the next, as SQLite writes its log. The
    /// file is there before.
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
