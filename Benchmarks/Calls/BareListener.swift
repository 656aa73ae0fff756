import Commands
import Glibc

/// A socket that listens at 127.0.0.1, for programs that use system calls only.
enum BareListener {
    /// - Parameter port: 0 selects a free one.
    static func listen(_ port: Int) throws -> (descriptor: Int32, port: Int) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = in_port_t(port).bigEndian
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        enable(SO_REUSEADDR, of: SOL_SOCKET, on: listener)
        let listens = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && Glibc.listen(listener, 4096) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard listens else { throw UsageError("listening: \(String(cString: strerror(errno)))") }
        return (listener, Int(in_port_t(bigEndian: name.sin_port)))
    }

    static func enable(_ option: Int32, of level: Int32, on descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
    }
}
