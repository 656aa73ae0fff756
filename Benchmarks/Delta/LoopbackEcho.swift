import CEpoll
import Commands
import Glibc
import Platform

/// A TCP echo on localhost between two otherwise idle threads: the minimum round-trip time of the machine.
final class LoopbackEcho {
    private let near: Int32
    private let size: Int

    init(size: Int) throws {
        self.size = size
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        near = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let connected = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, address, &length) == 0 && connect(near, address, length) == 0
            }
        }
        guard connected else { throw UsageError("a TCP connection to itself: \(String(cString: strerror(errno)))") }
        let far = gnu_accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
        close(listener)
        for end in [near, far] {
            var on: Int32 = 1
            setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        Task.detached {
            await onThread {
                var bytes = [UInt8](repeating: 0, count: size)
                while true {
                    let count = recv(far, &bytes, size, 0)
                    guard count > 0 else { break }
                    send(far, bytes, count, Int32(MSG_NOSIGNAL))
                }
                close(far)
            }
        }
    }

    deinit { close(near) }

    /// Runs a number of round trips and returns the nanoseconds of each.
    func run(_ rounds: Int) -> [Int] {
        var bytes = [UInt8](repeating: 0x61, count: size)
        return (0..<rounds).map { _ in
            let start = Int(MonotonicClock.now)
            send(near, bytes, size, Int32(MSG_NOSIGNAL))
            var received = 0
            while received < size {
                let count = recv(near, &bytes, size - received, 0)
                guard count > 0 else { break }
                received += count
            }
            return Int(MonotonicClock.now) - start
        }
    }
}
