internal import Glibc
internal import Networking
package import Transports

/// Keeps a port while nobody listens on it: a socket that is bound and does not listen. Who connects is refused.
package final class PortReservation: Sendable {
    private let descriptor: Int32
    package let port: Int

    /// - Parameter address: one of IPv4 that this process listens on, or others may; port 0 for one that is free.
    package init(_ address: SocketAddress) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        precondition(descriptor >= 0, "socket: \(String(cString: strerror(errno)))")
        var yes: Int32 = 1
        for option in [SO_REUSEADDR, SO_REUSEPORT] {
            setsockopt(descriptor, SOL_SOCKET, option, &yes, socklen_t(MemoryLayout<Int32>.size))
        }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(address.port).bigEndian
        inet_pton(AF_INET, address.host, &name.sin_addr)
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        precondition(status == 0, "bind: \(String(cString: strerror(errno)))")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isKnown = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        precondition(isKnown == 0, "getsockname: \(String(cString: strerror(errno)))")
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: name.sin_port))
    }

    deinit { _ = Glibc.close(descriptor) }
}
