import Glibc
import TestSupport
import Testing

@testable import Networking
import Transports

@Suite("Listeners", .timeLimit(.minutes(5)))
struct ListenerTests {
    /// Another descriptor of the socket that listens on a port, as a process has during its creation: it closes it a moment later.
    private static func copy(listeningOn port: Int) -> Int32? {
        for descriptor in Int32(3)..<4096 {
            let socket = Socket(descriptor: descriptor)
            var listens: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            if getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0, listens == 1,
                socket.localAddress?.port == port
            {
                return fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            }
        }
        return nil
    }

    @Test("a listener frees its port when it closes, also while a new child process still has its socket")
    func freesPort() async throws {
        let reactors = try ReactorGroup.servers(count: 1).reactors
        let first = try Listener.bind(host: "127.0.0.1", port: 0, reactors: reactors) { $0.close() }
        let copy = try #require(Self.copy(listeningOn: first.address.port))
        defer { close(copy) }
        await first.close()
        let second = try Listener.bind(host: "127.0.0.1", port: first.address.port, reactors: reactors) { $0.close() }
        #expect(second.address == first.address)
        await second.close()
    }

    /// Whether this machine has the loopback address of IPv6.
    private static let hasIPv6: Bool = {
        guard let socket = try? Socket.open(for: address("::1")) else { return false }
        defer { socket.close() }
        return socket.bind(to: address("::1")) == 0
    }()

    private static func address(_ host: String, _ port: Int = 0) -> SocketAddress {
        SocketAddress(host: host, port: port, isIPv6: host.contains(":"))
    }

    /// Connects to each host at the port of a listener, and returns the hosts of the accepted peers.
    private func peers(of listener: Listener, _ seen: Journal, from hosts: [String]) async throws -> [String] {
        for host in hosts {
            let channel = try await Connector.connect(host: host, port: listener.address.port, on: ReactorGroup.client)
            await channel.reactor.perform { channel.close() }
        }
        await seen.wait { $0.count == hosts.count }
        return seen.entries.sorted()
    }

    @Test("a listener on :: accepts IPv6 and IPv4, with IPv4 addresses for IPv4 peers", .enabled(if: hasIPv6))
    func bothFamilies() async throws {
        let reactors = try ReactorGroup.servers(count: 2).reactors
        let seen = Journal()
        let listener = try Listener.bind(host: "::", port: 0, reactors: reactors) { channel in
            seen.record("\(channel.remoteAddress?.host ?? "-") \(channel.localAddress?.host ?? "-")")
            channel.close()
        }
        #expect(listener.addresses == [Self.address("::", listener.address.port)])
        #expect(
            try await peers(of: listener, seen, from: ["127.0.0.1", "::1"]) == ["127.0.0.1 127.0.0.1", "::1 ::1"])
        // The port is in use for both.
        for host in ["::", "0.0.0.0", "127.0.0.1"] {
            let error = #expect(throws: TransportError.self) {
                try Listener.bind(host: host, port: listener.address.port, reactors: reactors) { $0.close() }
            }
            #expect(error?.code == .addressInUse)
        }
        await listener.close()
    }

    @Test(
        "a listener on a name accepts at each of the name's addresses on this machine, at one port",
        .enabled(if: hasIPv6))
    func severalAddresses() async throws {
        let reactors = try ReactorGroup.servers(count: 2).reactors
        let seen = Journal()
        let listener = try Listener.bind(
            to: [Self.address("192.0.2.1"), Self.address("::1"), Self.address("127.0.0.1")], reactors: reactors
        ) { channel in
            seen.record(channel.localAddress?.host ?? "-")
            channel.close()
        }
        let port = listener.address.port
        #expect(port > 0)
        #expect(listener.addresses == [Self.address("::1", port), Self.address("127.0.0.1", port)])
        #expect(try await peers(of: listener, seen, from: ["127.0.0.1", "::1"]) == ["127.0.0.1", "::1"])
        await listener.close()
        // A used one is an error, and leaves no socket behind.
        let other = try Listener.bind(host: "127.0.0.1", port: 0, reactors: reactors) { $0.close() }
        let both = [Self.address("::1", other.address.port), other.address]
        let error = #expect(throws: TransportError.self) {
            try Listener.bind(to: both, reactors: reactors) { $0.close() }
        }
        #expect(error?.code == .addressInUse)
        let again = try Listener.bind(to: [both[0]], reactors: reactors) { $0.close() }
        await again.close()
        await other.close()
    }

    @Test("a client tries the next address when one is refused or does not answer in time")
    func nextAddress() async throws {
        let reactor = try Reactor(name: "test-race")
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { $0.close() }
        // A listening socket with a full backlog: the kernel drops further attempts.
        let address = Self.address("127.0.0.1")
        let listening = try Socket.open(for: address)
        defer { listening.close() }
        try #require(listening.bind(to: address) == 0 && listening.listen(backlog: 0) == 0)
        let full = try #require(listening.localAddress)
        var sockets: [Socket] = []
        for _ in 0..<4 {
            let socket = try Socket.open(for: full)
            _ = socket.connect(to: full)
            sockets.append(socket)
        }
        defer { for socket in sockets { socket.close() } }
        let refused = Self.address("::1", listener.address.port)
        func connect(_ addresses: [SocketAddress]) async throws -> SocketAddress? {
            let channel = try await Connector.connect(to: addresses, of: "example", 0, on: reactor, .seconds(600))
            let remote = channel.remoteAddress
            await reactor.perform { channel.close() }
            return remote
        }
        #expect(try await connect([refused, listener.address]) == listener.address)
        #expect(try await connect([full, listener.address]) == listener.address)
        #expect(try await connect([full, refused, listener.address]) == listener.address)
        let error = await #expect(throws: TransportError.self) { try await connect([refused, refused]) }
        #expect(error?.code == .refused)
        #expect(await reactor.perform { reactor.liveTimerCount } == 0)
        await listener.close()
    }
}
