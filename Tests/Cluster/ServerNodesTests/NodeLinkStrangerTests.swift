import Glibc
import Networking
import NodeSupport
import Platform
import Synchronization
import TestSupport
import Testing
import Transports
import TrebuchetActors
import TrebuchetCluster
import WebSockets

@testable import Trebuchet
@testable import TrebuchetNodes

/// Peers at the address for node links that are no nodes, or other nodes than they claim.
@Suite(.timeLimit(.minutes(5))) struct NodeLinkStrangerTests {
    /// A node of two, whose end of the links is not a server's.
    private final class Peers: NodeLinkOwner {
        let node: ClusterNode
        let other: ClusterNode

        init() throws { (node, other) = (try ClusterNode(name: "a"), try ClusterNode(name: "b")) }

        func announcement(of node: ClusterNode) -> NodeAnnouncement? {
            [self.node, other].contains(node) ? NodeAnnouncement(NodeAddress(host: "127.0.0.1", port: 1)) : nil
        }
        func handled(from node: ClusterNode) -> UInt64 { 7 }
        func receive(_ message: [UInt8], from node: ClusterNode) -> Bool { message == [1] }
        func mayHaveLost(_ node: ClusterNode) {}
    }

    /// A listener for links, its log, and the certificates of other nodes.
    private final class Rig: Sendable {
        let peers: Peers
        let authority: [UInt8]
        let listener: NodeLinkListener
        private let log = LogLines()

        init(timeout: Duration = .seconds(60)) async throws {
            let (peers, engine) = (try Peers(), MemoryEngine())
            self.peers = peers
            authority = try await NodeLinkIdentity.authority(at: engine)
            let identity = try NodeLinkIdentity(of: peers.node, authority: authority, at: engine)
            listener = try NodeLinkListener(
                at: NodeAddress(host: "127.0.0.1", port: 0), peers, identity, on: .servers(count: 1), timeout: timeout,
                logPause: .zero
            ) { [log] in log.append($0) }
        }

        func hasLogged(_ text: String) async -> Bool { await log.contains(text) }

        func tls(of node: String) throws -> NodeTLS {
            let authority = try CertifiedKey(certificate: authority, key: authority)
            return try NodeTLS(authority.issue(to: node, validFor: nil), authority: authority)
        }

        /// Requests a link with the certificate of one node, perhaps as another. Returns the error, or the close reason after
        /// the messages.
        func link(
            certificate: String, from sender: ClusterNode, to receiver: ClusterNode, _ messages: [[UInt8]] = []
        ) async -> String {
            do {
                let tls = try tls(of: certificate)
                let (ends, end) = AsyncStream<String>.makeStream()
                let socket = try await WebSocketClient.connect(
                    to: WebSocketURL("wss://127.0.0.1:\(listener.port)/"), peerName: tls.name(of: "a").text,
                    subprotocols: [NodeLinkRequest.subprotocol],
                    headers: NodeLinkRequest.headers(from: sender, to: receiver), limits: WebSocketLimits(),
                    context: { tls.client }
                ) { _ in Recorder(messages, end) }
                defer { socket.abort() }
                for await text in ends { return text }
                return ""
            } catch {
                return "\(error)"
            }
        }

        func stop() async { await listener.close() }
    }

    /// Sends messages, and reports the received counts, or the reason of the end.
    private final class Recorder: WebSocketHandler {
        private let messages: [[UInt8]]
        private let end: AsyncStream<String>.Continuation
        private let counts = Mutex(0)

        init(_ messages: [[UInt8]], _ end: AsyncStream<String>.Continuation) {
            (self.messages, self.end) = (messages, end)
        }

        func webSocketDidOpen(_ socket: WebSocket) { for message in messages { socket.send(binary: message) } }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let count = NodeLinkAcknowledgement(Array(UnsafeRawBufferPointer(message)))?.received
            let isLast = counts.withLock { counts in
                counts += 1
                return counts == messages.count + 1
            }
            if isLast { end.yield("received \(count ?? 0)") }
        }
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { end.yield(reason) }
    }

    private static func open(_ port: Int) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return descriptor
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32) {
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Receives until the peer ends the connection, in order or by a reset.
    private static func receiveAll(_ descriptor: Int32) async -> [UInt8] {
        await onThread {
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 { all += buffer[..<count] }
            return all
        }
    }

    @Test("a node of the cluster is accepted, and its messages are counted")
    func accepted() async throws {
        let rig = try await Rig()
        let (a, b) = (rig.peers.node, rig.peers.other)
        #expect(await rig.link(certificate: "b", from: b, to: a) == "received 7")
        #expect(await rig.link(certificate: "b", from: b, to: a, [[], [1]]) == "received 7")
        #expect(await rig.link(certificate: "b", from: b, to: a, [[2]]) == "invalid message")
        await rig.stop()
    }

    @Test("a node is accepted only as itself, as a live node, and if it asks for this incarnation")
    func otherNames() async throws {
        let rig = try await Rig()
        let (a, b) = (rig.peers.node, rig.peers.other)
        let restarted = (a: try ClusterNode(name: "a"), b: try ClusterNode(name: "b"))
        let other = await rig.link(certificate: "c", from: b, to: a)
        #expect(other.hasSuffix("403 instead of 101: the certificate is not that of node b"))
        #expect(await rig.hasLogged("the certificate is not that of node b"))
        let unknown = await rig.link(certificate: "b", from: restarted.b, to: a)
        #expect(unknown.hasSuffix("node b is not in the list of live nodes"))
        let misdirected = await rig.link(certificate: "b", from: b, to: restarted.a)
        #expect(misdirected.hasSuffix("this is another node or another incarnation of it"))
        await rig.stop()
    }

    @Test("plain text, garbage and a TLS client without a certificate are refused at once, and the log says why")
    func strangers() async throws {
        let rig = try await Rig()
        let port = rig.listener.port
        let plain = Self.open(port)
        Self.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), to: plain)
        #expect(String(decoding: await Self.receiveAll(plain), as: UTF8.self).contains("HTTP/1.1 400"))
        #expect(await rig.hasLogged("the client does not use TLS"))
        let garbage = Self.open(port)
        Self.send((0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 31 | 0x80) }, to: garbage)
        _ = await Self.receiveAll(garbage)
        for descriptor in [plain, garbage] { close(descriptor) }
        let error = await #expect(throws: TransportError.self) {
            _ = try await WebSocketClient.connect(
                to: "wss://127.0.0.1:\(port)/", tls: TLSClientSettings(trust: .insecure)
            ) { _ in Recorder([], AsyncStream.makeStream().continuation) }
        }
        #expect(error?.code == .tls && error?.message.contains("the peer requires a certificate") == true)
        #expect(await rig.link(certificate: "b", from: rig.peers.other, to: rig.peers.node) == "received 7")
        await rig.stop()
    }

    @Test("a peer that stalls in the handshake is disconnected after the timeout")
    func stalled() async throws {
        let rig = try await Rig(timeout: .milliseconds(200))
        let clock = ContinuousClock.now
        // The beginning of a TLS record, and nothing.
        let peers = [[], [22, 3, 1, 2, 0, 1]].map { (bytes: [UInt8]) in
            let descriptor = Self.open(rig.listener.port)
            Self.send(bytes, to: descriptor)
            return descriptor
        }
        for descriptor in peers {
            #expect(await Self.receiveAll(descriptor) == [])
            close(descriptor)
        }
        #expect(ContinuousClock.now - clock >= .milliseconds(150))
        await rig.stop()
    }

    @Test("more silent peers than connections keep no node from connecting, and no link breaks")
    func crowd() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: engineRoute, areReached: true) { nodes in
            let info = try #require(try await engine.nodes().first { $0.node == nodes[1].member.node }).info
            let port = try #require(NodeAnnouncement(info)).address.port
            let client = try await nodes[0].client()
            let tally = try client.resolve(Tally.self, id: nodes[1].names(1)[0])
            let till = try client.resolve(CashRegister.self, id: nodes[1].names("tills")[0])
            func usesLinks() async -> Bool {
                await eventually {
                    let before = engineRoute.messageCount
                    _ = try? await tally.add(1)
                    return engineRoute.messageCount == before
                }
            }
            #expect(await usesLinks())
            let before = engineRoute.messageCount
            let strangers = (0..<1_100).map { _ in
                let descriptor = Self.open(port)
                Self.send([22, 3, 1, 2, 0, 1], to: descriptor)
                return descriptor
            }
            defer { for descriptor in strangers { close(descriptor) } }
            // Larger than a part of a message, so that it is buffered while it arrives.
            let text = String(repeating: "x", count: 600_000)
            for _ in 0..<5 { #expect(try await till.length(text) == 600_000) }
            #expect(engineRoute.messageCount == before)
            for node in nodes { node.server.context.nodes?.cutLinks() }
            #expect(await usesLinks())
        }
    }
}
