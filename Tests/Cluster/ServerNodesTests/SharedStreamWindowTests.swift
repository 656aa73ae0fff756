import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The flow control of shared streams to a node, and the messages that wait for it. Serialized: each node of a test causes load while it
/// runs.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SharedStreamWindowTests {
    /// Runs `body` with a node that owns all slots, an active board on it, a client of the node, and a subscriber to its shared streams.
    private func withSubscriber(
        _ body: (_ owner: Node, _ subscriber: NodeStreamSubscriber, _ name: String, _ own: TextClient) async throws ->
            Void
    ) async throws {
        let engine = MemoryEngine()
        try await withNodes(["b"], engine: engine) { nodes in
            let name = nodes[0].names("boards")[0]
            let own = try await nodes[0].textClient()
            own.call(1, name, "step()", "[]")
            #expect(await own.answer(1) != nil)
            let subscriber = try await NodeStreamSubscriber(engine, of: nodes[0])
            try await body(nodes[0], subscriber, name, own)
            subscriber.close()
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
        try await withSubscriber { owner, subscriber, name, _ in
            subscriber.begin(1, name, "observeSteps")
            subscriber.begin(2, name, "observeCells")
            subscriber.begin(3, name, "observeMarks")
            // This actor has not been activated.
            subscriber.begin(4, owner.names("boards", 2)[1], "observeSteps")
            for number: UInt64 in 1...3 { #expect(await eventually { subscriber.kinds(number).last == .caughtUp }) }
            #expect(await eventually { subscriber.kinds(4) == [.moved] })
            let window = try #require(await owner.feeds().first).window
            #expect(subscriber.byteCount > 300)
            #expect(window.unacknowledgedBytes == subscriber.byteCount)
            subscriber.take(subscriber.byteCount)
            #expect(await eventually { window.unacknowledgedBytes == 0 })
        }
    }

    @Test("at most 1 MiB of shared streams and one more message are unacknowledged, also after many streams have ended")
    func most() async throws {
        try await withSubscriber { owner, subscriber, name, own in
            for number: UInt64 in 1...20 {
                subscriber.begin(number, name, "observeSteps")
                #expect(await eventually { subscriber.kinds(number).last == .caughtUp })
                subscriber.end(number)
            }
            let feeds = try #require(await owner.feeds().first)
            subscriber.take(subscriber.byteCount)
            #expect(await eventually { feeds.window.unacknowledgedBytes == 0 })
            subscriber.begin(21, name, "observeCells")
            #expect(await eventually { subscriber.kinds(21).last == .caughtUp })
            await fill(name, 2...8, own)
            #expect(await eventually { !feeds.window.isOpen })
            let most = feeds.window.unacknowledgedBytes
            #expect(most > FlowControlWindow.most && most < FlowControlWindow.most + 450_000)
            subscriber.take(subscriber.byteCount)
            #expect(await eventually { subscriber.messages(21).last?.version { version, _ in version } == 8 })
        }
    }

    @Test("the end of the initial delivery is signalled once it is complete, and not while the window is closed")
    func shown() async throws {
        try await withSubscriber { owner, subscriber, name, own in
            subscriber.begin(1, name, "observeCells")
            #expect(await eventually { subscriber.kinds(1).last == .caughtUp })
            await fill(name, 2...6, own)
            let window = try #require(await owner.feeds().first).window
            #expect(!window.isOpen)
            subscriber.begin(2, name, "observeSteps")
            // Starts later, at the same actor.
            subscriber.begin(3, name, "observeMarks")
            #expect(await eventually { subscriber.kinds(3).first == .started })
            #expect(subscriber.kinds(2) == [.started])
            subscriber.take(window.unacknowledgedBytes)
            #expect(await eventually { subscriber.kinds(2) == [.started, .version, .caughtUp] })
            #expect(await eventually { subscriber.kinds(3) == [.started, .caughtUp] })
        }
    }

    @Test("an owner keeps no state for a stream that it has ended")
    func ended() async throws {
        try await withSubscriber { owner, subscriber, name, own in
            subscriber.begin(1, name, "observeSteps")
            #expect(await eventually { subscriber.kinds(1).last == .caughtUp })
            let start = try #require(subscriber.messages(1).first?.decoded(SharedStreamStart.self))
            for number in 2...100 {
                own.call(number, name, "step()", "[]")
                // At most as many calls in a turn as versions are retained.
                if number % 20 == 0 { #expect(await own.answer(number) != nil) }
            }
            for number: UInt64 in 2...5 {
                // More versions are missing than are retained.
                subscriber.begin(number, name, "observeSteps", behind: (start.epoch, 1))
                #expect(await eventually { subscriber.kinds(number).last == .failed })
            }
            let line = try #require(await owner.feeds().first?.user as? SharedStreamChannel)
            #expect(await eventually { await line.reactor.perform { line.streamCount } == 1 })
        }
    }

    // MARK: Responses

    @Test("a response follows the update of its call, even when much data of other streams is in transit to the node")
    func answers() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let (a, b) = (try Node("a", engine), try Node("b", engine, through: engineRoute))
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
            engineRoute.set { $0.holdsMessages = true }
            await fill(names[0], 1...6, own)
            for (number, reader) in readers.enumerated() {
                reader.client.call(1, reader.name, "step()", "[]")
                own.observe("s\(number)", reader.name, "observeSteps")
                // The call has run.
                #expect(await eventually { own.versions.count { $0.text.contains(#""data":1"#) } == number + 1 })
            }
            engineRoute.set { $0.holdsMessages = false }
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
    func pendingDeliveries() {
        let pendingDeliveries = PendingDeliveries()
        let log = Mutex<[String]>([])
        let wait = { (name: String) in pendingDeliveries.whenSent { log.withLock { $0.append(name) } } }
        #expect(!wait("nothing is owed") && pendingDeliveries.isEmpty)
        let (first, second) = (pendingDeliveries.startDelivery(), pendingDeliveries.startDelivery())
        #expect(wait("both") && !pendingDeliveries.isEmpty)
        let third = pendingDeliveries.startDelivery()
        #expect(wait("all"))
        pendingDeliveries.endDelivery(second)
        #expect(log.withLock { $0 } == [])
        pendingDeliveries.endDelivery(first)
        #expect(log.withLock { $0 } == ["both"])
        pendingDeliveries.endDelivery(third)
        #expect(log.withLock { $0 } == ["both", "all"])
        #expect(pendingDeliveries.isEmpty && !wait("nothing is owed"))
    }

    @Test(
        "a client's channel with too much data waiting for its node's streams ends after these, and sends nothing more")
    func tooManyPendingBytes() async throws {
        try await withSubscriber { owner, subscriber, _, _ in
            let pendingDeliveries = PendingDeliveries(maximumBufferedBytes: 2_000)
            let owed = pendingDeliveries.startDelivery()
            let shard = owner.server.shards[0]
            let client = ForwardedClient(
                session: "taker.1", streams: "t", caller: nil, largestMessage: 1 << 20)
            let name = owner.server.context.idempotencyCache.names.carry(
                client.session, onReactor: shard.index, isVerified: true)
            _ = ForwardedLink(try subscriber.channel(at: owner), client, name, at: shard, behind: pendingDeliveries)
            let text = [UInt8](repeating: UInt8(ascii: "1"), count: 500)
            await shard.reactor.perform {
                let connection = shard.connections[name.name.number]
                for _ in 1...3 { text.withUnsafeBytes { connection?.succeed($0, $0) } }
            }
            #expect(await eventually { await shard.reactor.perform { shard.connections[name.name.number] == nil } })
            #expect(subscriber.frames.isEmpty)
            pendingDeliveries.endDelivery(owed)
            #expect(await eventually { subscriber.frames.count == 3 })
            #expect(subscriber.frames.map(\.kind) == [.toClient, .toClient, .ended])
            #expect(pendingDeliveries.reserveBytes(2_000))
        }
    }
}
