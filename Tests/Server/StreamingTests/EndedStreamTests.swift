import Bytes
import Dispatch
import Networking
import Testing
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Streams that end while their connection iterates over them, and updates from several threads.
@Suite(.timeLimit(.minutes(5)), .serialized) struct EndedStreamTests {
    private static let reactor = FanOutRig.newReactor()
    private var reactor: Reactor { Self.reactor }

    /// A link that breaks when the end of a stream is sent. `@unchecked Sendable`: only the suite's reactor uses it.
    private final class BreakingLink: MessageLink, @unchecked Sendable {
        weak var connection: ServerConnection?
        var isWritable = false

        func send(_ body: (inout ByteBuffer) -> Void) { connection?.linkDidClose() }
        func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {}
        func inOneWrite(_ body: () -> Void) { body() }
        func sendDrainPing() {}
        func close(_ code: WebSocketCloseCode, reason: String) {}
        func abort() {}
        func pauseReading() {}
        var memory: MemoryAccount? { nil }
        func resumeReading() {}
        var host: AddressKey? { nil }
    }

    /// A connection that is behind with this number of streams, over a link that breaks at the first end.
    private func breaking(_ count: Int32, _ source: EventSource, _ rig: FanOutRig) -> (ServerConnection, BreakingLink) {
        let link = BreakingLink()
        let connection = rig.connection(over: link)
        link.connection = connection
        for _ in 0..<count { rig.observe(source, connection) }
        connection.streamUsage.streams = count
        return (connection, link)
    }

    @Test("streams are released once when their connection breaks while the end of one is sent")
    func brokenWhileCatchingUp() async {
        let left = await reactor.perform { [self] in
            let rig = FanOutRig(reactor)
            let source = EventSource(buffer: 2, home: rig.shard) { $0() }
            let (connection, link) = breaking(3, source, rig)
            source.send(1)
            rig.endTurns()
            for number in 2...6 { source.send(number) }
            link.isWritable = true
            connection.linkDidBecomeWritable()
            rig.endTurns()
            return connection.streamUsage.streams
        }
        #expect(left == 0)
    }

    @Test("streams are released once when their connection breaks while it drains")
    func brokenWhileDraining() async {
        let left = await reactor.perform { [self] in
            let rig = FanOutRig(reactor)
            let source = EventSource(buffer: 2, home: rig.shard) { $0() }
            let (connection, link) = breaking(3, source, rig)
            link.isWritable = true
            connection.drain(reconnectAfterMilliseconds: 0)
            return connection.streamUsage.streams
        }
        #expect(left == 0)
    }

    @Test("updates sent in an actor's last turn arrive before the end", arguments: [true, false])
    func lastTurn(isAtHome: Bool) async {
        let seen = await reactor.perform { [self] in
            let rig = FanOutRig(reactor)
            let source = EventSource(buffer: 8, home: isAtHome ? rig.shard : nil) { $0() }
            let (connection, link) = rig.connection()
            rig.observe(source, connection)
            rig.endTurns()
            return (rig, source, connection, link)
        }
        await reactor.perform {
            seen.1.send(1)
            seen.1.send(2)
            seen.1.endStream()
        }
        let (versions, answers) = await reactor.perform {
            seen.0.endTurns()
            return (seen.3.versions, seen.3.answers)
        }
        #expect(versions == [1, 2])
        #expect(answers == 1)
    }

    @Test("a last turn with more updates than are retained leaves no gap before the end")
    func longLastTurn() async {
        let versions = await reactor.perform { [self] in
            let rig = FanOutRig(reactor)
            let source = EventSource(buffer: 2, home: rig.shard) { $0() }
            let (connection, link) = rig.connection()
            rig.observe(source, connection)
            source.send(1)
            rig.endTurns()
            for number in 2...6 { source.send(number) }
            source.endStream()
            rig.endTurns()
            return (link.versions, link.answers)
        }
        #expect(versions.0 == [1])
        #expect(versions.1 == 1)
    }

    @Test("updates of an actor without a reactor arrive in order, whichever threads it runs on")
    func order() async {
        let versions = await reactor.perform { [self] in
            let rig = FanOutRig(reactor)
            let source = EventSource(buffer: 8, home: nil) { $0() }
            let (connection, link) = rig.connection()
            rig.observe(source, connection)
            // One after the other, as the actor's isolation guarantees.
            let sent = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                source.send(1)
                sent.signal()
            }
            sent.wait()
            source.send(2)
            return (rig, connection, link)
        }
        let seen = await reactor.perform {
            versions.0.endTurns()
            return (versions.2.versions, versions.2.answers)
        }
        #expect(seen.0 == [1, 2])
        #expect(seen.1 == 0, "the stream continues")
    }
}
