import Glibc
import Platform
import Synchronization

/// One end of a pipe, closed when it is released, and on exec.
final class PipeEnd: Sendable {
    struct NoPipe: Error { let errno: Int32 }
    struct NotWritten: Error { let errno: Int32 }

    private let stored: Mutex<Int32?>

    private init(_ descriptor: Int32) { stored = Mutex(descriptor) }

    deinit { close() }

    static func pair() throws -> (read: PipeEnd, write: PipeEnd) {
        var descriptors: [Int32] = [0, 0]
        // A socket pair, since only that can be made closed-on-exec in one step from Swift.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &descriptors) == 0 else { throw NoPipe(errno: errno) }
        return (PipeEnd(descriptors[0]), PipeEnd(descriptors[1]))
    }

    /// -1 when it has been closed.
    var descriptor: Int32 { stored.withLock { $0 ?? -1 } }

    func close() {
        stored.withLock { descriptor in
            if let descriptor { _ = Glibc.close(descriptor) }
            descriptor = nil
        }
    }

    /// Reads the available bytes as soon as there are some; empty at the end.
    func read() async -> [UInt8] {
        let end = self
        return await onThread {
            [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                var result = -1
                repeat {
                    result = Glibc.read(end.descriptor, buffer.baseAddress, buffer.count)
                } while result < 0
                    && errno == EINTR
                count = max(result, 0)
            }
        }
    }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            // No signal is raised when the other end is closed.
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw NotWritten(errno: errno) }
            rest = rest.dropFirst(count)
        }
    }

    func readToEnd() async -> [UInt8] {
        var all: [UInt8] = []
        while case let bytes = await read(), !bytes.isEmpty { all += bytes }
        return all
    }
}
