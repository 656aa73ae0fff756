import Networking
import Synchronization
import Testing

@testable import Trebuchet
@testable import TrebuchetActors

/// Events and metrics of versions and their deliveries.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DeliveryEventTests {
    private static let reactor = FanOutRig.newReactor()

    private final class Listener: ServerEventHandler {
        let kinds: ServerEvent.Kinds
        private let received = Mutex<[ServerEvent]>([])

        init(_ kinds: ServerEvent.Kinds) { self.kinds = kinds }

        func handle(_ event: ServerEvent) { received.withLock { $0.append(event) } }

        var versions: [ServerEvent.Version] {
            received.withLock { $0 }.compactMap { if case .versionCreated(let version) = $0 { version } else { nil } }
        }
        var deliveries: [ServerEvent.Delivery] {
            received.withLock { $0 }.compactMap {
                if case .updateDelivered(let delivery) = $0 { delivery } else { nil }
            }
        }
        var skips: [(UInt64, UInt64, UInt64)] {
            received.withLock { $0 }.compactMap {
                if case .versionsConflated(_, let connection, let from, let to) = $0 {
                    (connection, from, to)
                } else {
                    nil
                }
            }
        }
    }

    private static func call(_ number: UInt64) -> ObservedCall {
        let peer = ServerEvent.Peer(connection: 1, address: nil, principal: nil)
        return ObservedCall(
            ServerEvent.Call(number: number, peer: peer, actor: "page", type: "Rig.Page", method: "set(_:)"))
    }

    private static let label = ServerEvent.Stream(actor: "page", type: "Rig.Page", target: "observePage")

    @Test("a version lists each contributing call once, in order, and each change belongs to a version")
    func causes() async {
        await Self.reactor.perform {
            let rig = FanOutRig(Self.reactor)
            let listener = Listener(.versions)
            rig.events.addHandler(listener)
            let (page, connection) = (rig.observed(), rig.connection().connection)
            rig.observe(page.source, connection, as: Self.label)
            rig.endTurns()
            for call in [7, 7, 8] as [UInt64] {
                Self.call(call).during { page.set("merged by \(call)") }
            }
            rig.endTurns()
            page.set("by no call")
            rig.endTurns()
            Self.call(9).during { page.set("alone") }
            rig.endTurns()
            let versions = listener.versions.suffix(3)
            #expect(versions.map(\.calls) == [[7, 8], [], [9]])
            #expect(versions.allSatisfy { $0.stream == Self.label && $0.unnamedCallCount == 0 && $0.bytes > 0 })
            #expect(versions.map(\.number) == versions.map(\.number).sorted())
        }
    }

    @Test("a version of very many calls lists a thousand, and counts the others")
    func manyCauses() {
        var causes = VersionCauses()
        #expect(causes.takeRecorded() == nil)
        for call in 1...1_500 { causes.recordCall(UInt64(call)) }
        let taken = causes.takeRecorded()
        #expect(taken?.calls.count == 1_000 && taken?.calls.last == 1_000 && taken?.more == 500)
        #expect(causes.takeRecorded() == nil)
    }

    @Test("contributing calls of a version are listed and counted once, in whatever order they arrive")
    func taking() {
        for count in [2, 100, 1_200] as [UInt64] {
            var causes = VersionCauses()
            for _ in 0..<100 { for call in 1...count { causes.recordCall(call) } }
            let taken = causes.takeRecorded()
            #expect(taken?.calls == Array(1...min(count, 1_000)))
            #expect(taken?.more == max(0, Int(count) - 1_000))
        }
    }

    @Test("a version to which the server contributed does not list calls as its only cause")
    func mixed() {
        for (notes, isMixed) in [([7, 8], false), ([7, 0], true), ([0, 7], true), ([0], true)] as [([UInt64], Bool)] {
            var causes = VersionCauses()
            for note in notes { causes.recordCall(note) }
            #expect(causes.takeRecorded()?.hasOthers == isMixed)
        }
        let call = Self.call(7)
        #expect(call.during { EventBus.currentCall } == 7)
        call.markEnded()
        #expect(call.during { EventBus.currentCall } == 0)
    }

    @Test("deliveries and skipped versions are reported separately for fast and slow readers")
    func deliveries() async {
        await Self.reactor.perform {
            let rig = FanOutRig(Self.reactor)
            let listener = Listener(.deliveries)
            rig.events.addHandler(listener)
            let page = rig.observed()
            let (quick, _) = rig.connection()
            let (slow, slowLink) = rig.connection()
            rig.observe(page.source, quick, as: Self.label)
            rig.observe(page.source, slow, as: Self.label)
            rig.endTurns()
            let before = rig.shard.counts.sum
            slowLink.isWritable = false
            // So many large and different versions that no delta leads from the slow reader's version to the last one.
            for round in 0..<200 {
                page.set(String(repeating: "\(round) ", count: 4_000))
                rig.endTurns()
            }
            slowLink.isWritable = true
            slow.linkDidBecomeWritable()
            let counts = rig.shard.counts.sum
            func more(_ metric: Metric) -> UInt64 { counts[metric] - before[metric] }
            let mine = listener.deliveries.filter { $0.connection == quick.connectionNumber }
            let others = listener.deliveries.filter { $0.connection == slow.connectionNumber }
            #expect(mine.count == 201)
            #expect(others.count == 2)
            #expect(others.last?.number == mine.last?.number)
            #expect(others.last?.form == .snapshot)
            #expect(listener.skips.map(\.0) == [slow.connectionNumber])
            #expect(listener.skips.map { $0.2 - $0.1 - 1 } == [199])
            #expect(more(.versionsSkipped) == 199)
            #expect(more(.patchesDelivered) + more(.wholesDelivered) == 201)
            #expect(more(.versionsMade) == 200)
            #expect(more(.subscribersBlocked) == 200)
            #expect(counts.times(of: .deliveries).count - before.times(of: .deliveries).count == 200)
        }
    }

    @Test("an event without a handler is not recorded, and a removed handler receives no events")
    func silence() async {
        await Self.reactor.perform {
            let rig = FanOutRig(Self.reactor)
            let (gone, deaf) = (Listener(.all), Listener(.store))
            rig.events.addHandler(gone)
            rig.events.addHandler(gone)
            rig.events.addHandler(deaf)
            rig.events.removeHandler(gone)
            #expect(!rig.events.isEnabled(for: [.versions, .deliveries, .calls]))
            #expect(rig.events.isEnabled(for: .store))
            let (page, connection) = (rig.observed(), rig.connection().connection)
            rig.observe(page.source, connection, as: Self.label)
            Self.call(7).during { page.set("b") }
            #expect(page.source.causes.calls.isEmpty)
            rig.endTurns()
            #expect(gone.versions.isEmpty && gone.deliveries.isEmpty && deaf.deliveries.isEmpty)
            #expect(rig.shard.counts.sum[.versionsMade] > 0)
        }
    }
}
