import Networking
import Platform
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite(.timeLimit(.minutes(5)), .serialized) struct FanOutSliceTests {
    /// Many slow subscribers, and other work in each turn. `@unchecked Sendable`: created and used on its reactor only.
    private final class Scene: @unchecked Sendable {
        let rig: FanOutRig
        let state: FanOutRig.Observed
        var audience: [(connection: ServerConnection, link: FanOutRig.Link)] = []
        /// The number of turns in which other work ran, and that number at the last send.
        var turns = 0
        var turnsAtLastSend = 0
        var inTurn: () -> Void = {}
        /// The versions that callers had seen at their responses, with the versions of their changes.
        var answered: [(version: UInt64?, wanted: UInt64)] = []
        private var isOver = false

        init(_ reactor: Reactor, subscribers: Int) {
            rig = FanOutRig(reactor)
            state = rig.observed()
            for _ in 0..<subscribers {
                let made = rig.connection()
                rig.observe(state.source, made.connection)
                made.link.willSend = { [unowned self] in
                    let begun = MonotonicClock.now
                    while MonotonicClock.now - begun < 10_000 {}
                    turnsAtLastSend = turns
                }
                audience.append(made)
            }
            turn(reactor)
        }

        private func turn(_ reactor: Reactor) {
            // Rare enough to leave processor time to other tests.
            reactor.schedule(after: .microseconds(200)) { [self] in
                turns += 1
                inTurn()
                if !isOver { turn(reactor) }
            }
        }

        var newest: Set<UInt64?> { Set(audience.map(\.link.versions.last)) }

        func stop() {
            isOver = true
            for (connection, _) in audience { connection.linkDidClose() }
        }
    }

    private static let reactor = FanOutRig.newReactor()
    private var reactor: Reactor { Self.reactor }

    @Test(
        "while an update is sent to 2,000 subscribers, other work runs in between, and responses follow their updates"
    )
    func slices() async {
        let scene = await reactor.perform { [reactor] in Scene(reactor, subscribers: 2_000) }
        #expect(await eventually { await reactor.perform { scene.newest == [1] } })
        let before = await reactor.perform {
            scene.turns = 0
            scene.state.set("two")
            return scene.turns
        }
        #expect(before == 0)
        #expect(await eventually { await reactor.perform { scene.newest == [2] } })
        let turns = await reactor.perform { scene.turnsAtLastSend }
        #expect(turns >= 3, "2,000 subscribers, each of 10 µs, took \(turns) turns")
        await reactor.perform { scene.stop() }
    }

    @Test("versions published during the delivery of others reach all subscribers in order, and the latest one always")
    func newerMeanwhile() async {
        let scene = await reactor.perform { [reactor] in Scene(reactor, subscribers: 1_000) }
        await reactor.perform {
            // One version in each of 20 turns, each with the response to a call of a subscriber.
            var rounds = 0
            scene.inTurn = {
                guard rounds < 20 else { return }
                rounds += 1
                scene.state.set("version \(rounds)")
                let caller = scene.audience[rounds * 7 % 1_000]
                caller.connection.succeed(UnsafeRawBufferPointer(start: nil, count: 0), nil)
                scene.answered.append((caller.link.versions.last, UInt64(rounds + 1)))
            }
        }
        #expect(await eventually { await reactor.perform { scene.newest == [21] } })
        let isInOrder = await reactor.perform {
            scene.audience.allSatisfy { zip($0.link.versions, $0.link.versions.dropFirst()).allSatisfy(<) }
        }
        #expect(isInOrder)
        let sawOwn = await reactor.perform { scene.answered.filter { $0.version == $0.wanted }.count }
        #expect(sawOwn == 20)
        await reactor.perform { scene.stop() }
    }

    @Test("changes during a delivery are conflated, and streams without waiting responses are not delayed")
    func merged() async {
        let scene = await reactor.perform { [reactor] in Scene(reactor, subscribers: 500) }
        #expect(await eventually { await reactor.perform { scene.newest == [1] } })
        let (quiet, link) = await reactor.perform {
            let quiet = scene.rig.observed()
            let (connection, link) = scene.rig.connection()
            scene.rig.observe(quiet.source, connection)
            scene.audience.append((connection, link))
            var rounds = 0
            scene.inTurn = {
                guard rounds < 40 else { return }
                rounds += 1
                for call in 0..<10 {
                    scene.state.set("version \(rounds), \(call)")
                    scene.rig.shard.callDidEnd()
                }
                quiet.set("version \(rounds)")
            }
            return (quiet, link)
        }
        #expect(
            await eventually {
                await reactor.perform { link.versions.last == 41 && scene.audience[0].link.versions.last == 401 }
            })
        let (most, ofQuiet) = await reactor.perform {
            (
                scene.audience.dropLast().map(\.link.versions.count).max() ?? 0,
                withExtendedLifetime(quiet) { link.versions.count }
            )
        }
        #expect(most < 200, "\(most) of 401 versions were sent")
        #expect(ofQuiet > 20, "\(ofQuiet) of 41 versions were sent")
        await reactor.perform { scene.stop() }
    }

    @Test("every encoded version reaches all subscribers, even when each round over them finds new versions")
    func noneLeftOut() async {
        let scene = await reactor.perform { [reactor] in Scene(reactor, subscribers: 300) }
        #expect(await eventually { await reactor.perform { scene.newest == [1] } })
        await reactor.perform {
            var changes = 0
            scene.inTurn = {
                guard changes < 300 else { return }
                changes += 1
                scene.state.set("version \(changes)")
                scene.rig.shard.callDidEnd()
            }
        }
        #expect(await eventually { await reactor.perform { scene.newest == [301] } })
        let (sent, encoded) = await reactor.perform {
            (Set(scene.audience.map(\.link.versions)), scene.state.source.encodeCount)
        }
        // When a round takes many turns, some versions are conflated before they are encoded.
        #expect(sent.count == 1 && sent.first?.count == encoded, "\(encoded) versions, \(sent.map(\.count)) sent")
        #expect(encoded > 70, "more versions than are retained for slow subscribers")
        await reactor.perform { scene.stop() }
    }

    @Test("subscribers that leave during a delivery do not disturb it")
    func leaving() async {
        let scene = await reactor.perform { [reactor] in Scene(reactor, subscribers: 1_000) }
        #expect(await eventually { await reactor.perform { scene.newest == [1] } })
        await reactor.perform {
            scene.state.set("two")
            scene.inTurn = {
                for _ in 0..<20 where scene.audience.count > 100 {
                    let index = scene.audience.count / 3
                    scene.audience[index].connection.linkDidClose()
                    scene.audience.remove(at: index)
                }
            }
        }
        #expect(await eventually { await reactor.perform { scene.audience.count == 100 && scene.newest == [2] } })
        await reactor.perform { scene.stop() }
    }

    @Test("a response checks only changed streams, not all streams of its connection", arguments: [0, 64, 250])
    func looks(streams: Int) async {
        let looks = await reactor.perform { [reactor] in
            let rig = FanOutRig(reactor)
            let others = (0..<streams).map { _ in rig.observed() }
            let own = rig.observed()
            let (connection, link) = rig.connection()
            for other in others { rig.observe(other.source, connection) }
            let (stranger, _) = rig.connection()
            let strange = rig.observed()
            rig.observe(strange.source, stranger)
            rig.endTurns()
            let before = rig.shard.changes.checkCount
            for round in 0..<100 {
                // A state of another connection changes with each call.
                strange.set("\(round)")
                connection.succeed(UnsafeRawBufferPointer(start: nil, count: 0), nil)
            }
            let looks = rig.shard.changes.checkCount - before
            // The connection's stream is still updated immediately.
            rig.observe(own.source, connection)
            own.set("new")
            connection.succeed(UnsafeRawBufferPointer(start: nil, count: 0), nil)
            precondition(link.versions.last == 2)
            connection.linkDidClose()
            stranger.linkDidClose()
            rig.endTurns()
            return looks
        }
        // A call publishes its changes: two entries for each.
        #expect(looks <= 300, "\(looks) looks for 100 answers")
    }
}
