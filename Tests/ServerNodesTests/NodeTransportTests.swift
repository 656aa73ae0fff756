import Networking
import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

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

    /// Counts received frames.
    private final class FrameCounter: NodeChannelHandler {
        private struct Counts {
            var messages = 0
            var breaks = 0
            var overflows = 0
        }

        let reactor: Reactor
        private let counts = Mutex(Counts())

        init(on reactor: Reactor) { self.reactor = reactor }

        var messages: Int { counts.withLock { $0.messages } }
        var breaks: Int { counts.withLock { $0.breaks } }
        var overflows: Int { counts.withLock { $0.overflows } }

        func receive(_ frame: NodeFrame) { counts.withLock { $0.messages += frame.kind == .toOwner ? 1 : 0 } }
        func channelDidBreak(received: UInt64) { counts.withLock { $0.breaks += 1 } }
        func channelDidOverflow(received: UInt64) { counts.withLock { $0.overflows += 1 } }
    }
}
