import Glibc
import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet

/// Unauthenticated peers at the address for node links.
@Suite(.timeLimit(.minutes(5))) struct NodeLinkAuthenticationTests {
    /// An unauthenticated connection: a handshake, and most of one message.
    private static func halfMessage(to port: Int, bytes: Int) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let head =
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: \(NodeLinkMessage.subprotocol)\r\n\r\n"
        _ = head.withCString { send(descriptor, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        _ = recv(descriptor, &buffer, buffer.count, 0)
        var frame: [UInt8] =
            [0x82, 0x80 | 127] + withUnsafeBytes(of: UInt64(bytes).bigEndian) { Array($0) } + [0, 0, 0, 0]
        frame += [UInt8](repeating: 1, count: bytes - 1)
        var sent = 0
        while sent < frame.count {
            let count = frame[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            sent += count
        }
        return descriptor
    }

    @Test("unauthenticated peers take no capacity from nodes: no link between nodes breaks")
    func halfMessages() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: engineRoute, areReached: true) { nodes in
            let info = try #require(try await engine.nodes().first { $0.node == nodes[1].member.node }).info
            let port = try #require(NodeAnnouncement(info)).address.port
            let client = try await nodes[0].client()
            let tally = try client.resolve(Tally.self, id: nodes[1].names(1)[0])
            let till = try client.resolve(CashRegister.self, id: nodes[1].names("tills")[0])
            #expect(
                await eventually {
                    let before = engineRoute.messageCount
                    _ = try? await tally.add(1)
                    return engineRoute.messageCount == before
                })
            let before = engineRoute.messageCount
            // More than the limit for one address.
            let strangers = (0..<80).map { _ in Self.halfMessage(to: port, bytes: 1 << 20) }
            defer { for descriptor in strangers { close(descriptor) } }
            // Larger than a part of a message, so that it is buffered while it arrives.
            let text = String(repeating: "x", count: 600_000)
            for _ in 0..<20 { #expect(try await till.length(text) == 600_000) }
            #expect(engineRoute.messageCount == before)
        }
    }
}
