internal import Glibc
package import Transports

extension SocketAddress {
    /// Creates the address of a literal such as `127.0.0.1` or `::1`; nil for a name. `::ffff:127.0.0.1` becomes `127.0.0.1`.
    package init?(literal host: String, port: Int) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            self.init(host: host, port: port, isIPv6: false)
        } else if inet_pton(AF_INET6, host, &six) == 1 {
            let mapped = Self.mapped(six)
            self.init(host: mapped ?? host, port: port, isIPv6: mapped == nil)
        } else {
            return nil
        }
    }

    /// Returns the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), which an IPv4 peer has at a dual-stack
    /// socket. All code that counts, compares or shows hosts uses the IPv4 address.
    private static func mapped(_ address: in6_addr) -> String? {
        withUnsafeBytes(of: address) { bytes in
            guard bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF else { return nil }
            return bytes[12...].map { "\($0)" }.joined(separator: ".")
        }
    }

    /// True for `::`, the wildcard address of IPv6.
    var isIPv6Wildcard: Bool {
        guard isIPv6 else { return false }
        var six = in6_addr()
        inet_pton(AF_INET6, host, &six)
        return withUnsafeBytes(of: six) { $0.allSatisfy { $0 == 0 } }
    }

    /// Resolves a host to its addresses of both families. Blocks during name resolution: not for a reactor's thread.
    ///
    /// - Parameter forListening: includes families for which the machine has only a loopback address.
    package static func resolve(
        host: String, port: Int, forListening: Bool = false
    ) throws(TransportError) -> [SocketAddress] {
        guard (0...65535).contains(port) else {
            throw TransportError(.addressInvalid, "port \(port) is not between 0 and 65535")
        }
        if let literal = SocketAddress(literal: host, port: port) { return [literal] }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        if !forListening { hints.ai_flags = AI_ADDRCONFIG }
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &list)
        guard status == 0 else {
            throw TransportError(
                .addressInvalid, "host '\(host)' does not resolve: \(String(cString: gai_strerror(status)))")
        }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr.flatMap({ SocketAddress($0, port: port) }), !found.contains(address)
            {
                found.append(address)
            }
            next = entry.pointee.ai_next
        }
        guard !found.isEmpty else { throw TransportError(.addressInvalid, "host '\(host)' has no IP address") }
        return found
    }

    /// Converts the system's form; nil for families other than IPv4 and IPv6. The port is taken from it unless one is given.
    init?(_ address: UnsafePointer<sockaddr>, port: Int? = nil) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            var four = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
            inet_ntop(AF_INET, &four.sin_addr, &text, socklen_t(text.count))
            self.init(host: Self.string(text), port: port ?? Int(UInt16(bigEndian: four.sin_port)), isIPv6: false)
        case AF_INET6:
            var six = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self)
            let port = port ?? Int(UInt16(bigEndian: six.sin6_port))
            if let mapped = Self.mapped(six.sin6_addr) {
                self.init(host: mapped, port: port, isIPv6: false)
            } else {
                inet_ntop(AF_INET6, &six.sin6_addr, &text, socklen_t(text.count))
                self.init(host: Self.string(text), port: port, isIPv6: true)
            }
        default:
            return nil
        }
    }

    private static func string(_ text: [CChar]) -> String {
        String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Calls `body` with the system's form of the address.
    func withSystemAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        if isIPv6 {
            var six = sockaddr_in6()
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = UInt16(port).bigEndian
            inet_pton(AF_INET6, host, &six.sin6_addr)
            return Self.call(&six, body)
        }
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        four.sin_port = UInt16(port).bigEndian
        inet_pton(AF_INET, host, &four.sin_addr)
        return Self.call(&four, body)
    }

    private static func call<Address, R>(
        _ address: inout Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
    ) -> R {
        withUnsafeBytes(of: &address) { raw in
            body(raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
        }
    }
}
