import Glibc
import TestSupport
import Testing

@testable import Networking
import Transports

@Suite("Kernel state of a socket", .timeLimit(.minutes(5)))
struct SocketTests {
    /// Two ends of a connection.
    private static func pair() throws -> (Socket, Socket) {
        let address = SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false)
        let listener = try Socket.open(for: address)
        defer { listener.close() }
        try #require(listener.bind(to: address) == 0 && listener.listen(backlog: 1) == 0)
        let here = try Socket.open(for: address)
        _ = here.connect(to: try #require(listener.localAddress))
        var ready = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, 10_000)
        return (here, try #require(listener.accept().socket))
    }

    @Test(
        "bytes that do not fit into the peer's kernel are waiting, also when all sent bytes are acknowledged; later none are"
    )
    func delivery() async throws {
        let (here, there) = try Self.pair()
        defer { for socket in [here, there] { socket.close() } }
        #expect(here.delivery?.isWaiting == false)
        let before = try #require(here.delivery).acknowledged
        var sent: UInt64 = 0
        let part = [UInt8](repeating: 7, count: 64 << 10)
        while case let count = part.withUnsafeBytes({ here.send($0) }), count > 0 { sent += UInt64(count) }
        for _ in 0..<1_000 { #expect(here.delivery?.isWaiting == true) }
        #expect(try #require(here.delivery).acknowledged < before + sent)
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        let isTaken = await eventually {
            while buffer.withUnsafeMutableBytes({ there.receive(into: $0) }) > 0 {}
            return here.delivery?.isWaiting == false
        }
        #expect(isTaken)
        #expect(here.delivery?.acknowledged == before + sent)
    }

    @Test("a socket without a connection has no delivery state")
    func noConnection() throws {
        #expect(Socket(descriptor: -1).delivery == nil)
    }
}
