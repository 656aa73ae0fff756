import Glibc
import Testing

@testable import Networking
import Transports

@Suite struct SocketAddressTests {
    @Test(
        "a literal is an address without a look-up",
        arguments: [
            ("127.0.0.1", false, "127.0.0.1:80"), ("0.0.0.0", false, "0.0.0.0:80"), ("::1", true, "[::1]:80"),
            ("2001:db8::7", true, "[2001:db8::7]:80"),
        ])
    func literals(_ text: String, _ isIPv6: Bool, _ description: String) throws {
        let address = try #require(SocketAddress(literal: text, port: 80))
        #expect(address.host == text)
        #expect(address.port == 80)
        #expect(address.isIPv6 == isIPv6)
        #expect(address.description == description)
        #expect(try SocketAddress.resolve(host: text, port: 80) == [address])
        // To the system's form and back.
        #expect(address.withSystemAddress { bytes, _ in SocketAddress(bytes) } == address)
        #expect(address.withSystemAddress { bytes, _ in SocketAddress(bytes, port: 8_081) }?.port == 8_081)
        let size = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
        #expect(address.withSystemAddress { Int($1) } == size)
    }

    @Test(
        "an IPv4-mapped IPv6 address equals its IPv4 address",
        arguments: ["::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1"])
    func mapped(_ text: String) throws {
        let wanted = SocketAddress(host: "192.0.2.1", port: 80, isIPv6: false)
        #expect(SocketAddress(literal: text, port: 80) == wanted)
        // As the system reports a peer at a socket of both families.
        let system = SocketAddress(host: text, port: 80, isIPv6: true)
        #expect(system.withSystemAddress { bytes, _ in SocketAddress(bytes) } == wanted)
    }

    @Test(
        "other texts are not addresses",
        arguments: ["", "localhost", "127.0.0", "1.2.3.4.5", "::g", "[::1]", "256.1.1.1"])
    func names(_ text: String) {
        #expect(SocketAddress(literal: text, port: 80) == nil)
    }

    @Test("an address of another family is rejected")
    func otherFamily() {
        var local = sockaddr()
        local.sa_family = sa_family_t(AF_UNIX)
        #expect(SocketAddress(&local) == nil)
    }

    @Test("ports range from 0 to 65535", arguments: [(-1, false), (0, true), (65_535, true), (65_536, false)])
    func ports(_ port: Int, _ isGood: Bool) {
        for host in ["127.0.0.1", "localhost"] {
            if isGood {
                #expect((try? SocketAddress.resolve(host: host, port: port))?.first?.port == port)
            } else {
                let error = #expect(throws: TransportError.self) { try SocketAddress.resolve(host: host, port: port) }
                #expect(error?.code == .addressInvalid)
                #expect(error?.message == "port \(port) is not between 0 and 65535")
            }
        }
    }

    @Test("a name resolves to each of its addresses once, with the requested port")
    func localhost() throws {
        let addresses = try SocketAddress.resolve(host: "localhost", port: 4_711)
        #expect(Set(addresses).count == addresses.count)
        #expect(!addresses.isEmpty)
        #expect(addresses.allSatisfy { $0.port == 4_711 && ["127.0.0.1", "::1"].contains($0.host) })
    }

    @Test("the error for an unknown name contains the name")
    func unknown() {
        let error = #expect(throws: TransportError.self) {
            try SocketAddress.resolve(host: "no such host", port: 80)
        }
        #expect(error?.code == .addressInvalid)
        #expect(error?.message.hasPrefix("host 'no such host' does not resolve: ") == true)
    }

    @Test(
        "errors of system calls have the code of their kind, and name the call",
        arguments: [
            (EADDRINUSE, .addressInUse, "EADDRINUSE"), (EADDRNOTAVAIL, .addressInvalid, "EADDRNOTAVAIL"),
            (EAFNOSUPPORT, .addressInvalid, "EAFNOSUPPORT"), (ECONNREFUSED, .refused, "ECONNREFUSED"),
            (ETIMEDOUT, .timedOut, "ETIMEDOUT"), (EPIPE, .closed, "EPIPE"), (ECONNRESET, .closed, "ECONNRESET"),
            (ECONNABORTED, .closed, "ECONNABORTED"), (EMFILE, .system, "EMFILE"), (99_999, .system, "errno 99999"),
        ] as [(Int32, TransportError.Code, String)])
    func errors(_ number: Int32, _ code: TransportError.Code, _ name: String) {
        let error = TransportError.system("call", number, "doing it")
        #expect(error.code == code)
        #expect(error.message == "doing it: \(String(cString: strerror(number))) (call: \(name))")
        #expect(error == TransportError(code, error.message, cause: CancellationError()))
        #expect(error != TransportError(code, "another"))
        #expect(error != TransportError(.token, error.message))
    }
}
