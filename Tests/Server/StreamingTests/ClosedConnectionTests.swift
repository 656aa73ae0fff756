import Bytes
import Networking
import Testing
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("Connections whose link is gone")
struct ClosedConnectionTests {
    /// A link that records uses after its end, when the memory of a real link is freed. `@unchecked Sendable`: only the rig's reactor uses
    /// it.
    private final class Link: MessageLink, @unchecked Sendable {
        var isGone = false
        private(set) var usesAfterEnd = 0
        private let address = AddressKey(SocketAddress(host: "192.0.2.7", port: 1, isIPv6: false))

        private func use() { if isGone { usesAfterEnd += 1 } }

        var isWritable: Bool {
            use()
            return true
        }
        var memory: MemoryAccount? {
            use()
            return nil
        }
        var host: AddressKey? {
            use()
            return address
        }
        func send(_ body: (inout ByteBuffer) -> Void) { use() }
        func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) { use() }
        func inOneWrite(_ body: () -> Void) { use() }
        func sendDrainPing() {}
        func close(_ code: WebSocketCloseCode, reason: String) { use() }
        func pauseReading() { use() }
        func resumeReading() { use() }
        func abort() { use() }
    }

    @Test("remaining work for a closed connection does not use its link, and still counts for its host")
    func gone() async {
        let reactor = FanOutRig.newReactor()
        await reactor.perform {
            let rig = FanOutRig(reactor)
            let link = Link()
            let connection = rig.connection(over: link)
            let host = connection.scopes.host
            let state = rig.observed()
            rig.observe(state.source, connection)
            let subscription = connection.streams.values.first!
            #expect(host != nil)
            connection.linkDidClose()
            link.isGone = true
            #expect(connection.scopes.host == host)
            #expect(!connection.isWritable)
            connection.inOneWrite {}
            connection.close(.goingAway, reason: "")
            connection.fail(Array("1".utf8), TrebuchetError(.timeout, "late"))
            connection.succeed(UnsafeRawBufferPointer(start: nil, count: 0), nil)
            connection.receive(UnsafeRawBufferPointer(start: nil, count: 0))
            connection.drain(reconnectAfterMilliseconds: 0)
            connection.endStream(subscription, reason: .actorTerminated, error: nil)
            #expect(link.usesAfterEnd == 0)
        }
    }
}
