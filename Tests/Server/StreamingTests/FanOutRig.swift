import Bytes
import Networking
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// One state and many connections that observe it, on one reactor, without a network. To be used on that reactor only.
final class FanOutRig: @unchecked Sendable {
    /// A link that records the sent versions. `@unchecked Sendable`: only the rig's reactor uses it.
    final class Link: MessageLink, @unchecked Sendable {
        var isWritable = true
        var versions: [UInt64] = []
        /// The texts sent while `keepsTexts` is set.
        var texts: [SharedBytes] = []
        var keepsTexts = false
        var answers = 0
        /// The last version sent before each response.
        var versionsAtAnswers: [UInt64] = []
        /// Called before each version.
        var willSend: () -> Void = {}

        func send(_ body: (inout ByteBuffer) -> Void) {
            answers += 1
            versionsAtAnswers.append(versions.last ?? 0)
        }

        func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
            willSend()
            versions.append(Self.version(of: shared))
            if keepsTexts { texts.append(shared) }
        }

        /// The number after `"sequenceNumber":`, the first digits in the message.
        private static func version(of shared: SharedBytes) -> UInt64 {
            shared.bytes.prefix(60).drop { !(0x30...0x39).contains($0) }.prefix { (0x30...0x39).contains($0) }
                .reduce(0) { $0 * 10 + UInt64($1 - 0x30) }
        }

        func inOneWrite(_ body: () -> Void) { body() }
        func sendDrainPing() {}
        func close(_ code: WebSocketCloseCode, reason: String) {}
        func abort() {}
        func pauseReading() {}
        var memory: MemoryAccount? { nil }
        func resumeReading() {}
        var host: AddressKey? { nil }
    }

    struct Page: Codable, Sendable {
        var text = ""
        var number = 0
    }

    /// A state with an arbitrary text, and its change notifications. `@unchecked Sendable`: only the rig's reactor uses it.
    final class Observed: @unchecked Sendable {
        private let cell = _StateCell<Page>()
        let source: StateSource
        private let value: Value

        private final class Value { var page = Page() }

        init(_ shard: SystemShard) {
            let value = Value()
            self.value = value
            source = cell.source(home: shard, access: StateAccess(read: { value.page }, enter: { $0() }))
        }

        func set(_ text: String) {
            value.page.text = text
            cell.didChange()
        }

        /// A small change.
        func count() {
            value.page.number += 1
            cell.didChange()
        }
    }

    /// A reactor for a suite: separate from those of servers, which these tests would block.
    static func newReactor() -> Reactor {
        do { return try Reactor(name: "rig") } catch { fatalError("\(error)") }
    }

    let shard: SystemShard
    let server: ServerShard
    private let system: TrebuchetActorSystem

    init(_ reactor: Reactor) {
        let parts = ServerContext(reactors: 1, limits: ServerLimits(), log: nil)
        system = TrebuchetActorSystem(loops: [reactor], locals: parts.locals)
        shard = system.shards[0]
        server = ServerShard(states: shard, on: reactor, index: 0, context: parts, system: system)
    }

    /// The event bus of the shard.
    var events: EventBus { server.events }

    func observed() -> Observed { Observed(shard) }

    func connection() -> (connection: ServerConnection, link: Link) {
        let link = Link()
        return (connection(over: link), link)
    }

    func connection(over link: any MessageLink) -> ServerConnection {
        ServerConnection(link, name: server.newConnectionName(), shard: server)
    }

    /// Ends turns until all subscribers have been written to, except those of filters that another thread evaluates.
    func endTurns() {
        repeat { shard.endOfTurn() } while shard.isMarked && !shard.hasEvaluations
    }

    @discardableResult
    func observe(
        _ source: StreamProducer, _ connection: ServerConnection, sent: UInt64 = 0, as label: ServerEvent.Stream? = nil
    ) -> Broadcaster {
        let streamID = Array("s\(connection.streams.count)".utf8)
        var made: Broadcaster?
        shard.subscribe(to: source, as: label) { broadcaster in
            let subscription = StreamSubscription(
                streamID: streamID, broadcaster: broadcaster, subscriber: connection, isFiltered: false)
            subscription.markSent(upTo: sent)
            connection.streams[streamID] = subscription
            made = broadcaster
            return subscription
        } attach: {
            $0.producer.attach($0)
        }
        return made!
    }
}
