import NodeSupport
import Networking
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster
import WebSockets

@testable import Trebuchet

/// Nodes with direct links to each other.
@Suite(.timeLimit(.minutes(5))) struct NodeLinkTests {
    @Test("messages between nodes use direct links as soon as there are any")
    func direct() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: engineRoute, areReached: true) { nodes in
            let client = try await nodes[0].client()
            let tally = try client.resolve(Tally.self, id: #require(nodes[1].names("tallies").first))
            var counts = await tally.observeCount().makeAsyncIterator()
            #expect(await counts.next() == 0)
            // The first messages go through the coordination store, until each node has a link to the other.
            #expect(
                await eventually {
                    let before = engineRoute.messageCount
                    _ = try? await tally.add(1)
                    return nodes.allSatisfy { $0.server.context.nodes?.openLinkCount == 1 }
                        && engineRoute.messageCount == before
                })
            let before = engineRoute.messageCount
            let last = try await tally.add(1)
            for _ in 0..<100 { _ = try await tally.add(1) }
            while let count = await counts.next(), count < last + 100 {}
            #expect(engineRoute.messageCount == before)
        }
    }

    @Test("a node that fails to reach its coordination store can be started again at the same addresses")
    func startedAgain() async throws {
        let probe = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let port = try await probe.start().port
        await probe.shutdown(drain: .zero)
        let engineRoute = FaultyEngine(MemoryEngine())
        engineRoute.set { $0.isAway = true }
        let membership = try ClusterMembership(
            of: "a", at: engineRoute, settings: Node.settings, address: NodeAddress(host: "127.0.0.1", port: port))
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, cluster: membership, log: { _ in })
        for _ in 0..<3 {
            let error = await #expect(throws: ClusterEngineError.self) { try await server.start() }
            #expect(error?.code == .unavailable)
        }
        engineRoute.set { $0.isAway = false }
        try await server.start()
        #expect(await eventually { membership.member.slotCount == ClusterSlot.count })
        await server.shutdown(drain: .zero)
    }

    @Test("a broken link loses only messages in transit: calls continue through the coordination store, in order")
    func ending() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b"], engine: engine, areReached: true) { nodes in
            let client = try await nodes[0].client()
            let tally = try client.resolve(Tally.self, id: #require(nodes[1].names("tallies").first))
            var known = 0
            for number in 1...400 {
                // Counted in calls: on a busy machine each call would take as long as the interval between two cuts.
                let isCut = number.isMultiple(of: 8)
                async let cut: Void = { if isCut { for node in nodes { node.server.context.nodes?.cutLinks() } } }()
                do {
                    #expect(try await tally.follow(number))
                    known += 1
                } catch let error as TrebuchetError where error.code == .unknownOutcome {
                    // The call was in transit.
                }
                await cut
            }
            #expect(known > 300)
        }
    }

    @Test("a node that drains is reached over its link as long as calls run there")
    func stopping() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = try ["a", "b"].map { try Node($0, engine, through: $0 == "a" ? engineRoute : nil, isReached: true) }
        try await Node.with(nodes) {
            let (first, second) = (nodes[0], nodes[1])
            let till = try await first.client().resolve(CashRegister.self, id: second.names("tills")[0])
            #expect(
                await eventually {
                    _ = try? await till.pay("x", 1)
                    return first.server.context.nodes?.openLinkCount == 1
                })
            let pendingCall = Task { try await till.hold("stopping") }
            #expect(await eventually { PaymentLog.shared.count("stopping") == 1 })
            let stopping = Task { await second.server.shutdown() }
            #expect(await eventually { !first.member.liveNodes.contains(second.member.node) })
            let rounds = engineRoute.roundCount
            #expect(await eventually { engineRoute.roundCount > rounds + 4 })
            #expect(first.server.context.nodes?.openLinkCount == 1)
            PaymentLog.shared.release("stopping")
            #expect(try await pendingCall.value == "stopping")
            await stopping.value
        }
    }

    @Test("when nodes die under load, each @Idempotent call is answered and executed once")
    func underLoad() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b", "c"], engine: engine, areReached: true) { nodes in
            let client = try await nodes[0].client()
            let tallies = try (0..<12).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
            let isOver = Flag()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for tally in tallies {
                    group.addTask {
                        var last = try await tally.addOnce(1)
                        var counts = await tally.observeCount().makeAsyncIterator()
                        #expect(await counts.next() == last)
                        while !isOver.isSet {
                            last += 1
                            #expect(try await tally.addOnce(1) == last)
                            #expect(await counts.next() == last)
                        }
                    }
                }
                let (first, second, third) = (nodes[0], nodes[1], nodes[2])
                group.addTask {
                    #expect(await eventually { second.server.actorCount > 0 && third.server.actorCount > 0 })
                    try await second.kill()
                    #expect(await eventually { first.server.actorCount + third.server.actorCount == 12 })
                    await third.server.shutdown()
                    #expect(await eventually { first.server.actorCount == 12 })
                    isOver.set()
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("a peer without a node's key is neither answered nor accepted, and nodes continue")
    func unknownNodes() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b"], engine: engine, areReached: true) { nodes in
            let (a, b) = (nodes[0].member.node, nodes[1].member.node)
            let announced = try #require(try await engine.nodes().first { $0.node == b })
            let address = try #require(NodeAnnouncement(announced.info)).address
            let nonce = [UInt8](repeating: 7, count: NodeLinkMessage.nonceBytes)
            let hello = NodeLinkMessage.hello(from: a.description, to: b.description, nonce: nonce).bytes
            let forged: [[[UInt8]]] = [
                [[]], [[9, 9]], [Array(hello.dropLast())],
                [NodeLinkMessage.hello(from: a.description, to: a.description, nonce: nonce).bytes],
                [NodeLinkMessage.hello(from: "x#\(a.incarnation)", to: b.description, nonce: nonce).bytes],
                [hello, hello],
                [hello, NodeLinkMessage.proof([UInt8](repeating: 0, count: NodeLinkMessage.proofBytes)).bytes],
                [NodeLinkMessage.sealed([1], seal: [UInt8](repeating: 0, count: NodeLinkMessage.sealBytes)).bytes],
                [NodeLinkMessage.proof([UInt8](repeating: 0, count: NodeLinkMessage.proofBytes)).bytes],
            ]
            for messages in forged {
                let end = try await Forger.speak(messages, to: address)
                #expect(end == .policyViolation, "\(messages)")
            }
            let tally = try await nodes[0].client().resolve(Tally.self, id: #require(nodes[1].names("tallies").first))
            #expect(try await tally.add(1) == 1)
        }
    }

    @Test("messages are read as they were written; invalid ones are refused")
    func messages() {
        let bytes = (0..<32).map { UInt8($0) }
        let all: [NodeLinkMessage] = [
            .hello(from: "a", to: "b", nonce: bytes), .challenge(nonce: bytes, proof: bytes), .proof(bytes),
            .sealed([], seal: Array(bytes.prefix(16))), .sealed([1, 2], seal: Array(bytes.prefix(16))),
        ]
        for message in all { #expect(NodeLinkMessage(message.bytes) == message) }
        for message in all.dropLast(2) { #expect(NodeLinkMessage(Array(message.bytes.dropLast())) == nil) }
        #expect(NodeLinkMessage([]) == nil && NodeLinkMessage([0]) == nil && NodeLinkMessage([4, 1]) == nil)
        #expect(
            NodeLinkAcknowledgement([1, 2]) == nil
                && NodeLinkAcknowledgement(NodeLinkAcknowledgement(received: 7).bytes)?.received == 7)
        let announcement = NodeAnnouncement(NodeAddress(host: "::1", port: 7), key: bytes)
        #expect(NodeAnnouncement(announcement.bytes) == announcement)
        #expect(NodeAnnouncement([]) == nil && NodeAnnouncement(Array(announcement.bytes.dropLast())) == nil)
    }

    @Test("a sealed message is accepted once, in sequence, unchanged, and in its direction")
    func seals() {
        let bytes = (0..<32).map { UInt8($0) }
        func seals(_ sender: String = "a", _ key: UInt8 = 1) -> (
            ofSender: MessageAuthenticator, ofReceiver: MessageAuthenticator
        ) {
            let keys = ([UInt8](repeating: key, count: 32), [UInt8](repeating: 2, count: 32))
            return NodeLinkKeys(sender: sender, receiver: "b", nonces: (bytes, bytes), keys: keys).seals
        }
        func open(_ messages: [NodeLinkMessage], with seal: MessageAuthenticator = seals().ofSender) -> [[UInt8]?] {
            var seal = seal
            return messages.map { seal.open($0) }
        }
        var sealing = seals().ofSender
        let (first, second) = (sealing.seal([1]), sealing.seal([2]))
        #expect(open([first, second]) == [[1], [2]])
        #expect(open([second]) == [nil])
        #expect(open([first, first]) == [[1], nil])
        for other in [seals("x").ofSender, seals("a", 3).ofSender, seals().ofReceiver] {
            #expect(open([first], with: other) == [nil])
        }
        guard case .sealed(_, let seal) = first else {
            Issue.record("\(first)")
            return
        }
        #expect(open([.sealed([3], seal: seal)]) == [nil])
    }
}

/// Sends messages to a node's link address. `@unchecked Sendable`: only its socket's reactor accesses its state.
private final class Forger: WebSocketHandler, @unchecked Sendable {
    private let messages: [[UInt8]]
    private let end: CheckedContinuation<WebSocketCloseCode, Never>

    private init(_ messages: [[UInt8]], _ end: CheckedContinuation<WebSocketCloseCode, Never>) {
        (self.messages, self.end) = (messages, end)
    }

    /// Sends messages, and returns the close code of the peer.
    static func speak(_ messages: [[UInt8]], to address: NodeAddress) async throws -> WebSocketCloseCode {
        await withCheckedContinuation { end in
            Task {
                try await WebSocketClient.connect(
                    to: "ws://\(address.host):\(address.port)/", subprotocols: [NodeLinkMessage.subprotocol]
                ) { _ in Forger(messages, end) }
            }
        }
    }

    func webSocketDidOpen(_ socket: WebSocket) { for message in messages { socket.send(binary: message) } }
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {}
    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        end.resume(returning: code)
    }
}
