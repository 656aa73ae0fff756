import Glibc
import Testing

@testable import Networking
import Transports

@Suite("A listener", .timeLimit(.minutes(1)))
struct ListenerTests {
    /// Another descriptor of the socket that listens on a port, as a process has that is just being made: it closes it a moment later.
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

    @Test("frees its port when it is closed, also while a process that is being made still has its socket")
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
}
