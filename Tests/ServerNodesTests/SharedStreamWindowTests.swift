import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet

/// The flow control of shared streams to a node, and the messages that wait for it. Serialized: each node of a test causes load while it
/// runs.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SharedStreamWindowTests {
    /// Runs `body` with a node that owns all slots, an active board on it, a client of the node, and a subscriber to its shared streams.
    private func withTaker(
        _ body: (_ owner: Node, _ taker: NodeStreamSubscriber, _ name: String, _ own: TextClient) async throws -> Void
    ) async throws {
        let engine = MemoryEngine()
        try await withNodes(["b"], engine: engine) { nodes in
            let name = nodes[0].names("boards")[0]
            let own = try await nodes[0].textClient()
            own.call(1, name, "step()", "[]")
            #expect(await own.answer(1) != nil)
            let taker = try await NodeStreamSubscriber(engine, of: nodes[0])
            try await body(nodes[0], taker, name, own)
            taker.close()
            own.abort()
        }
    }

    /// Makes large versions of a board's cells, each of them a snapshot.
    private func fill(_ name: String, _ numbers: ClosedRange<Int>, _ client: TextClient) async {
        for number in numbers {
            client.call(number, name, "fill(_:)", "[\(400_000 + number * 1_000)]")
            #expect(await client.answer(number) != nil)
        }
    }

    @Test("all messages of shared streams count as unacknowledged until they are acknowledged")
    func counted() async throws {
        try await withTaker { owner, taker, name, _ in
            taker.begin(1, name, "observeSteps")
            taker.begin(2, name, "observeCells")
            taker.begin(3, name, "observeMarks")
            // This actor has not been activated.
            taker.begin(4, owner.names("boards", 2)[1], "observeSteps")
            for number: UInt64 in 1...3 { #expect(await eventually { taker.kinds(number).last == .caughtUp }) }
            #expect(await eventually { taker.kinds(4) == [.moved] })
            let window = try #require(await owner.feeds().first).window
            #expect(taker.byteCount > 300)
            #expect(window.unacknowledgedBytes == taker.byteCount)
            taker.take(taker.byteCount)
            #expect(await eventually { window.unacknowledgedBytes == 0 })
        }
    }

    @Test("at most 1 MiB of shared streams and one more message are unacknowledged, also after many streams have ended")
    func most() async throws {
        try await withTaker { owner, taker, name, own in
            for number: UInt64 in 1...20 {
                taker.begin(number, name, "observeSteps")
                #expect(await eventually { taker.kinds(number).last == .caughtUp })
                taker.end(number)
            }
            let feeds = try #require(await owner.feeds().first)
            taker.take(taker.byteCount)
            #expect(await eventually { feeds.window.unacknowledgedBytes == 0 })
            taker.begin(21, name, "observeCells")
            #expect(await eventually { taker.kinds(21).last == .caughtUp })
            await fill(name, 2...8, own)
            #expect(await eventually { !feeds.window.isOpen })
            let most = feeds.window.unacknowledgedBytes
            #expect(most > FlowControlWindow.most && most < FlowControlWindow.most + 450_000)
            taker.take(taker.byteCount)
            #expect(await eventually { taker.messages(21).last?.version { version, _ in version } == 8 })
        }
    }

    @Test("the end of the initial delivery is signalled once it is complete, and not while the window is closed")
    func shown() async throws {
        try await withTaker { owner, taker, name, own in
            taker.begin(1, name, "observeCells")
            #expect(await eventually { taker.kinds(1).last == .caughtUp })
            await fill(name, 2...6, own)
            let window = try #require(await owner.feeds().first).window
            #expect(!window.isOpen)
            taker.begin(2, name, "observeSteps")
            // Starts later, at the same actor.
            taker.begin(3, name, "observeMarks")
            #expect(await eventually { taker.kinds(3).first == .started })
            #expect(taker.kinds(2) == [.started])
            taker.take(window.unacknowledgedBytes)
            #expect(await eventually { taker.kinds(2) == [.started, .version, .caughtUp] })
            #expect(await eventually { taker.kinds(3) == [.started, .caughtUp] })
        }
    }

    @Test("an owner keeps no state for a stream that it has ended")
    func ended() async throws {
        try await withTaker { owner, taker, name, own in
            taker.begin(1, name, "observeSteps")
            #expect(await eventually { taker.kinds(1).last == .caughtUp })
            let start = try #require(taker.messages(1).first?.decoded(SharedStreamStart.self))
            for number in 2...100 {
                own.call(number, name, "step()", "[]")
                // At most as many calls in a turn as versions are retained.
                if number % 20 == 0 { #expect(await own.answer(number) != nil) }
            }
            for number: UInt64 in 2...5 {
                // More versions are missing than are retained.
                taker.begin(number, name, "observeSteps", behind: (start.epoch, 1))
                #expect(await eventually { taker.kinds(number).last == .failed })
            }
            let line = try #require(await owner.feeds().first?.user as? SharedStreamChannel)
            #expect(await eventually { await line.reactor.perform { line.streamCount } == 1 })
        }
    }

    // MARK: Responses

    @Test("a response follows the update of its call, even when much data of other streams is in transit to the node")
    func answers() async throws {
        let engine = MemoryEngine()
        let way = FaultyEngine(engine)
        let (a, b) = (try Node("a", engine), try Node("b", engine, through: way))
        try await Node.with([a, b]) {
            // Boards of both reactors.
            let names = b.names("boards", 7)
            let (other, own) = (try await a.textClient(), try await b.textClient())
            other.observe("o", names[0], "observeCells")
            #expect(await eventually { other.versions.count == 1 })
            var readers: [(client: TextClient, name: String)] = []
            for name in names.dropFirst() {
                let reader = try await a.textClient()
                reader.observe("o", name, "observeSteps")
                #expect(await eventually { reader.versions.count == 1 })
                readers.append((reader, name))
            }
            way.set { $0.holdsMessages = true }
            await fill(names[0], 1...6, own)
            for (number, reader) in readers.enumerated() {
                reader.client.call(1, reader.name, "step()", "[]")
                own.observe("s\(number)", reader.name, "observeSteps")
                // The call has run.
                #expect(await eventually { own.versions.count { $0.text.contains(#""data":1"#) } == number + 1 })
            }
            way.set { $0.holdsMessages = false }
            for (reader, _) in readers {
                #expect(await eventually { reader.answers("1").count == 1 && reader.versions.count == 2 })
                #expect(reader.messages.map(\.type) == ["streamStart", "streamData", "streamData", "response"])
                reader.abort()
            }
            for client in [other, own] { client.abort() }
        }
    }

    @Test("a large, constantly changing stream does not delay responses for long")
    func busy() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let names = nodes[1].names("boards", 2)
            let (reader, other) = (try await nodes[0].textClient(), try await nodes[0].textClient())
            reader.observe("o", names[0], "observeSteps")
            other.observe("o", names[1], "observeCells")
            #expect(await eventually { reader.versions.count == 1 && other.versions.count == 1 })
            let isOver = Flag()
            let writer = Task {
                let own = try await nodes[1].textClient()
                var number = 0
                while !isOver.isSet {
                    number += 1
                    own.call(number, names[1], "fill(_:)", "[\(300_000 + number % 100 * 1_000)]")
                    // Several calls at once.
                    if number % 8 == 0 { _ = await own.answer(number) }
                }
                own.abort()
            }
            for number in 1...40 {
                reader.call(number, names[0], "step()", "[]")
                #expect(await reader.answer(number) != nil)
                #expect(reader.versions.count == number + 1)
            }
            isOver.set()
            try await writer.value
            for client in [reader, other] { client.abort() }
        }
    }

    @Test("messages that wait for a node's streams are sent in order when all earlier deliveries have ended")
    func arrears() {
        let arrears = PendingDeliveries()
        let log = Mutex<[String]>([])
        let wait = { (name: String) in arrears.whenSent { log.withLock { $0.append(name) } } }
        #expect(!wait("nothing is owed") && arrears.isEmpty)
        let (first, second) = (arrears.startDelivery(), arrears.startDelivery())
        #expect(wait("both") && !arrears.isEmpty)
        let third = arrears.startDelivery()
        #expect(wait("all"))
        arrears.endDelivery(second)
        #expect(log.withLock { $0 } == [])
        arrears.endDelivery(first)
        #expect(log.withLock { $0 } == ["both"])
        arrears.endDelivery(third)
        #expect(log.withLock { $0 } == ["both", "all"])
        #expect(arrears.isEmpty && !wait("nothing is owed"))
    }

    @Test(
        "a client's channel with too much data waiting for its node's streams ends after these, and sends nothing more")
    func tooMuchWaits() async throws {
        try await withTaker { owner, taker, _, _ in
            let arrears = PendingDeliveries(maximumBufferedBytes: 2_000)
            let owed = arrears.startDelivery()
            let shard = owner.server.shards[0]
            let client = ForwardedClient(
                session: "taker.1", streams: "t", caller: nil, largestMessage: 1 << 20, wholeSeconds: false)
            let name = owner.server.context.idempotencyCache.names.carry(client.session, onReactor: shard.index)
            _ = ForwardedLink(try taker.line(at: owner), client, name, at: shard, behind: arrears)
            let text = [UInt8](repeating: UInt8(ascii: "1"), count: 500)
            await shard.reactor.perform {
                let connection = shard.connections[name.name.number]
                for _ in 1...3 { text.withUnsafeBytes { connection?.succeed($0, $0) } }
            }
            #expect(await eventually { await shard.reactor.perform { shard.connections[name.name.number] == nil } })
            #expect(taker.frames.isEmpty)
            arrears.endDelivery(owed)
            #expect(await eventually { taker.frames.count == 3 })
            #expect(taker.frames.map(\.kind) == [.toClient, .toClient, .ended])
            #expect(arrears.reserveBytes(2_000))
        }
    }
}
