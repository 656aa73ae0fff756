internal import Glibc
internal import Networking
package import Transports

/// Reserves a port while no server listens on it: a socket that is bound and does not listen. Connections are refused.
package final class PortReservation: Sendable {
    private let descriptor: Int32
    package let port: Int

    /// Reserves a port.
    ///
    /// - Parameter address: an IPv4 address on which this process listens, or other processes may listen; port 0 for a
    ///   free one.
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
