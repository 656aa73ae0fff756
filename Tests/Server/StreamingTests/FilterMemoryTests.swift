import Bytes
import Networking
import Relays
import TestSupport
import Testing
import TrebuchetTesting
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite(.timeLimit(.minutes(5)), .serialized) struct FilterMemoryTests {
    private static let reactor = FanOutRig.newReactor()
    private var reactor: Reactor { Self.reactor }

    /// Subscribers of one state, each with a separate filter.
    private func observe(
        _ filters: [StreamFilter], _ rig: FanOutRig, _ state: FanOutRig.Observed, limit: Int = 16 << 20
    ) throws -> [(connection: ServerConnection, link: FanOutRig.Link)] {
        try filters.map { filter in
            let made = rig.connection()
            var terms = FilterQuota()
            terms.byteLimit = limit
            let source = try state.source.filtered(filter, clock: reactor, terms: terms)
            rig.observe(source, made.connection)
            return made
        }
    }

    /// 150 conditions that become true simultaneously.
    private static let conditions = (0..<150).map {
        StreamFilter.where("/text", .greater(than: .string("a\(String(repeating: "b", count: $0))")))
    }

    @Test(
        "the distinct filters of a state have quotas per connection, principal and host, and unused ones are released")
    func shares() async {
        await reactor.perform { [self] in
            let rig = FanOutRig(reactor)
            let state = rig.observed()
            var limits = ServerLimits()
            limits.filters.perState = 64
            var number = 0
            func bring(_ connection: UInt64, _ principal: String?) -> Result<FilteredSource, any Error> {
                number += 1
                let terms = FilterQuota(limits, QuotaScopes(connection: connection, principal: principal, host: nil))
                return Result { try state.source.filtered(.path("/\(number)"), clock: reactor, terms: terms) }
            }
            func refusal(_ outcome: Result<FilteredSource, any Error>) -> String? {
                if case .failure(let error as TrebuchetError) = outcome { error.message } else { nil }
            }
            var brought: [FilteredSource] = []
            for connection in UInt64(1)...4 {
                for _ in 0..<4 { brought += [bring(connection, "ann")].compactMap { try? $0.get() } }
            }
            #expect(brought.count == 16)
            #expect(refusal(bring(1, nil))?.hasPrefix("quota exceeded: this connection has 4 of the 64") == true)
            #expect(refusal(bring(5, "ann"))?.hasPrefix("quota exceeded: 'ann' has 16 of the 64") == true)
            // A reservation for an existing filter is not counted.
            let terms = FilterQuota(limits, QuotaScopes(connection: 1, principal: "ann", host: nil))
            let again = try? state.source.filtered(.path("/1"), clock: reactor, terms: terms)
            #expect(again === brought.first)
            // Others have separate quotas, and unused filters are free again.
            for connection in UInt64(6)...17 {
                for _ in 0..<4 { brought += [bring(connection, nil)].compactMap { try? $0.get() } }
            }
            #expect(brought.count == 64)
            #expect(refusal(bring(18, nil))?.hasPrefix("limit reached: at most 64 different filters per state") == true)
            brought.removeFirst().endIfUnused()
            #expect(refusal(bring(5, "ann")) == nil)
        }
    }

    @Test("150 filters of a large state share one encoded text, and take a few times as long as its encoding")
    func sharedText() async throws {
        let (texts, ratio, retainedCount) = try await reactor.perform { [self] in
            Result {
                let rig = FanOutRig(reactor)
                let state = rig.observed()
                let readers = try observe(Self.conditions, rig, state)
                rig.endTurns()
                for (_, link) in readers { link.keepsTexts = true }
                let large = "z" + String(repeating: "x", count: 1 << 20)
                let begun = ProcessorTime.ofThread
                var plain = ByteBuffer()
                for _ in 0..<3 {
                    plain.removeAll()
                    try rig.shard.coder.encode(FanOutRig.Page(text: large), into: &plain)
                }
                let encoding = (ProcessorTime.ofThread - begun) / 3
                let start = ProcessorTime.ofThread
                state.set(large)
                rig.endTurns()
                let took = ProcessorTime.ofThread - start
                let texts = Set(readers.flatMap { $0.link.texts }.map { ObjectIdentifier($0) }).count
                let got = readers.filter { $0.link.versions == [2] }.count
                precondition(got == 150, "\(got) readers got it")
                for (connection, link) in readers { link.texts = []; _ = connection }
                let retainedCount = Set(
                    state.source.filters.current.flatMap { $0.undeliveredTexts.map { ObjectIdentifier($0.0) } }
                ).count
                for (connection, _) in readers { connection.linkDidClose() }
                return (texts, Double(took) / Double(max(1, encoding)), retainedCount)
            }
        }.get()
        #expect(texts == 1)
        #expect(retainedCount <= 1)
        #expect(ratio < 40, "\(ratio) times the time of encoding")
    }

    @Test("versions retained for slow filter readers are bounded; the readers of the oldest ones receive an error")
    func slowReaders() async throws {
        // Room for six old versions and the latest one.
        let limit = 6_500
        let (ended, other) = try await reactor.perform { [self] in
            Result {
                let rig = FanOutRig(reactor)
                let state = rig.observed()
                // Each condition holds for one version only, so that each filter would retain another one.
                let filters = (0..<10).map { StreamFilter.where("/text", .equal(.string(text($0)))) }
                let readers = try observe(filters, rig, state, limit: limit)
                let other = try observe([StreamFilter.distinct()], rig, state, limit: limit)[0]
                rig.endTurns()
                for (_, link) in readers { link.isWritable = false }
                for number in 0..<10 {
                    state.set(text(number))
                    rig.endTurns()
                }
                let ended = readers.filter { $0.connection.streams.isEmpty }.count
                let got = other.link.versions
                for (connection, _) in readers + [other] { connection.linkDidClose() }
                return (ended, got)
            }
        }.get()
        #expect(ended == 3)
        #expect(other == Array(1...11))
    }

    /// Objects that a test keeps on the reactor.
    private final class Scene: @unchecked Sendable {
        var rig: FanOutRig?
        var state: FanOutRig.Observed?
        var readers: [(connection: ServerConnection, link: FanOutRig.Link)] = []
        var timers = 0
    }

    @Test("a filter has at most one timer, however often its value changes in an interval, and none in the end")
    func timers() async throws {
        let scene = Scene()
        try await reactor.perform { [self] in
            Result {
                let rig = FanOutRig(reactor)
                let state = rig.observed()
                scene.timers = reactor.liveTimerCount
                let filter = StreamFilter.path("/text").atMost(every: .seconds(3_600))
                scene.readers = try observe([filter], rig, state)
                (scene.rig, scene.state) = (rig, state)
                rig.endTurns()
                for number in 0..<100 {
                    state.set(number.isMultiple(of: 2) ? "a" : "")
                    rig.endTurns()
                }
            }
        }.get()
        let during = await reactor.perform { [self] in
            let count = reactor.liveTimerCount - scene.timers
            for (connection, _) in scene.readers { connection.linkDidClose() }
            return count
        }
        let after = await reactor.perform { [self] in reactor.liveTimerCount - scene.timers }
        #expect(during == 1)
        #expect(after == 0)
    }

    private func text(_ number: Int) -> String { String(number) + String(repeating: "x", count: 900) }

    @Test("a part over the limit for the filters of a state ends only its stream")
    func largePart() async throws {
        let (whole, isEnded, answers) = try await reactor.perform { [self] in
            Result {
                let rig = FanOutRig(reactor)
                let state = rig.observed()
                state.set("short")
                let readers = try observe([.distinct(), .path("/text")], rig, state, limit: 100)
                rig.endTurns()
                precondition(readers.allSatisfy { $0.link.versions == [2] })
                state.set(String(repeating: "x", count: 200))
                rig.endTurns()
                let outcome = (
                    readers[0].link.versions, readers[1].connection.streams.isEmpty, readers[1].link.answers
                )
                for (connection, _) in readers { connection.linkDidClose() }
                return outcome
            }
        }.get()
        #expect(whole == [2, 3])
        #expect(isEnded)
        #expect(answers == 1)
    }

    @Test("whatever the limit for filters, a part is either sent or its stream ends", arguments: [true, false])
    func sentOrEnded(isThere: Bool) async throws {
        let sizes = 0...(isThere ? 200 : 300)
        let outcomes = try await reactor.perform { [self] in
            Result {
                try sizes.map { limit in
                    let rig = FanOutRig(reactor)
                    let state = rig.observed()
                    let other = try observe([.distinct()], rig, state, limit: limit)
                    let made = isThere ? nil : try observe([.path("/text")], rig, state, limit: limit)
                    rig.endTurns()
                    state.set(isThere ? String(repeating: "x", count: 4_100) : String(repeating: "x", count: 40))
                    rig.endTurns()
                    let readers = try made ?? observe([.path("/text")], rig, state, limit: limit)
                    rig.endTurns()
                    let outcome = (readers[0].link.versions.contains(2), readers[0].connection.streams.isEmpty)
                    for (connection, _) in other + readers { connection.linkDidClose() }
                    return outcome
                }
            }
        }.get()
        #expect(outcomes.allSatisfy { $0.0 != $0.1 })
        #expect(outcomes.first?.1 == true)
        #expect(outcomes.last?.0 == !isThere)
    }

    @Test("when one of several readers of a filter leaves, the others continue")
    func readersOfOneFilter() async throws {
        let (counts, versions) = try await reactor.perform { [self] in
            Result {
                let rig = FanOutRig(reactor)
                let state = rig.observed()
                let readers = try observe([.path("/text"), .path("/text")], rig, state)
                let source = try state.source.filtered(.path("/text"), clock: reactor, terms: FilterQuota())
                let relay = StateRelay(EncodedStream.State())
                let reader = LocalSubscriber(relay, on: rig.shard)
                reader.subscribe(to: source) { source.attach($0) }
                rig.endTurns()
                var counts = [state.source.filters.current.count]
                let counted = state.source.subscriberCount
                let taken = relay.currentValue.count
                reader.endSubscription()
                counts += [counted, Int(taken)]
                counts.append(state.source.filters.current.count)
                readers[0].connection.linkDidClose()
                state.set("again")
                rig.endTurns()
                let versions = readers[1].link.versions
                readers[1].connection.linkDidClose()
                rig.endTurns()
                counts.append(state.source.filters.current.count)
                return (counts, versions)
            }
        }.get()
        #expect(counts == [1, 2, 1, 1, 0], "one filter, two counted readers, one value read, one filter, none")
        #expect(versions.count == 2)
    }
}
