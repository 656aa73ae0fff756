import Networking
import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Messages queued for another node.
@Suite(.timeLimit(.minutes(5))) struct NodeTransportTests {
    @Test("when too much is queued for a node, the channels with the largest share end, and the others continue")
    func overflow() async throws {
        let gate = FaultyEngine(MemoryEngine())
        let (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        let reactor = try Reactor(name: "nodes")
        let (heavy, light, there) = (FrameCounter(on: reactor), FrameCounter(on: reactor), FrameCounter(on: reactor))
        // A refused channel would be reported to its peer, which has no handler: then the other channel ends too.
        let elsewhere = FrameCounter(on: reactor)
        let sender = NodeTransport(gate, as: a, maximumQueuedCount: 1 << 20) { _, _ in nil }
        let receiver = NodeTransport(gate, as: b) { line, _ in line.number == 2 ? there : elsewhere }
        try await receiver.start()
        let (first, second) = (sender.makeChannel(to: b, heavy), sender.makeChannel(to: b, light))
        for line in [first, second] { line.send(.open) }
        gate.set { $0.holdsMessages = true }
        for _ in 0..<24 {
            for (line, size) in [(first, 90_000), (second, 10_000)] {
                line.send(.toOwner, [UInt8](repeating: 1, count: size))
            }
        }
        #expect(await eventually { heavy.overflows == 1 })
        #expect(sender.waitingBytes <= (1 << 20) * 3 / 4)
        gate.set { $0.holdsMessages = false }
        #expect(await eventually { there.messages == 24 })
        #expect(light.overflows == 0 && light.breaks == 0 && heavy.breaks == 0)
        sender.close()
        receiver.close()
    }

    @Test("a node that a delayed list of live nodes lacks keeps its channels, however often the list is used")
    func delayedList() async throws {
        let engine = MemoryEngine()
        let (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        let reactor = try Reactor(name: "nodes")
        let (here, there) = (FrameCounter(on: reactor), FrameCounter(on: reactor))
        let sender = NodeTransport(engine, as: a) { _, _ in nil }
        let receiver = NodeTransport(engine, as: b) { _, _ in there }
        try await receiver.start()
        let line = sender.makeChannel(to: b, here)
        line.send(.open)
        line.send(.toOwner, [1])
        #expect(await eventually { there.messages == 1 })
        // The list was read before the other node had joined.
        for _ in 0..<10 { await sender.removeNodes(allBut: [a], reads: 7) }
        line.send(.toOwner, [2])
        #expect(await eventually { there.messages == 2 })
        #expect(here.breaks == 0)
        for reads in UInt64(8)...9 { await sender.removeNodes(allBut: [a], reads: reads) }
        #expect(await eventually { here.breaks == 1 })
        sender.close()
        receiver.close()
    }

    @Test("a node that ends in order reports which messages it has accepted; later ones have certainly not arrived")
    func orderlyEnd() async throws {
        let engine = MemoryEngine()
        let (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        let reactor = try Reactor(name: "nodes")
        let (here, there, next) = (FrameCounter(on: reactor), FrameCounter(on: reactor), FrameCounter(on: reactor))
        let sender = NodeTransport(engine, as: a) { _, _ in nil }
        let receiver = NodeTransport(engine, as: b) { _, _ in there }
        try await sender.start()
        try await receiver.start()
        let line = sender.makeChannel(to: b, here)
        line.send(.open)
        for _ in 0..<2 { line.send(.toOwner, [1]) }
        #expect(await eventually { there.messages == 2 })
        await receiver.refuseMessages()
        // The engine delivers them.
        for _ in 0..<3 { line.send(.toOwner, [2]) }
        await sender.flush()
        await receiver.end()
        #expect(await eventually { here.received == [2] })
        #expect(there.messages == 2 && there.breaks == 1)
        // It is not live any more, but its inbox and its links may still be open.
        let second = sender.makeChannel(to: b, next)
        second.send(.open)
        second.send(.toOwner, [3])
        #expect(await eventually { next.received == [0] })
        #expect(there.messages == 2)
        sender.close()
        receiver.close()
    }

    /// Counts received frames.
    private final class FrameCounter: NodeChannelHandler {
        private struct Counts {
            var messages = 0
            var breaks = 0
            var received: [UInt64] = []
            var overflows = 0
        }

        let reactor: Reactor
        private let counts = Mutex(Counts())

        init(on reactor: Reactor) { self.reactor = reactor }

        var messages: Int { counts.withLock { $0.messages } }
        var breaks: Int { counts.withLock { $0.breaks } }
        /// The numbers of messages that may have arrived when the channel broke.
        var received: [UInt64] { counts.withLock { $0.received } }
        var overflows: Int { counts.withLock { $0.overflows } }

        func receive(_ frame: NodeFrame) { counts.withLock { $0.messages += frame.kind == .toOwner ? 1 : 0 } }
        func channelDidBreak(received: UInt64) {
            counts.withLock {
                $0.breaks += 1
                $0.received.append(received)
            }
        }
        func channelDidOverflow(received: UInt64) { counts.withLock { $0.overflows += 1 } }
    }
}
