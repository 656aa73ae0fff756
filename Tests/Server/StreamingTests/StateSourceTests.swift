import Bytes
import Networking
import Platform
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite(.timeLimit(.minutes(5))) struct StateSourceTests {
    @Test("a broadcaster without subscribers is not attached, even when it was detached first")
    func lateAttach() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let counts = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = _StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            let gone = Broadcaster(source, shard: shard)
            source.detach(gone)
            source.attach(gone)
            var counts = [source.broadcasterCount]
            let broadcaster = Broadcaster(source, shard: shard)
            source.attach(broadcaster)
            counts.append(source.broadcasterCount)
            source.detach(broadcaster)
            counts.append(source.broadcasterCount)
            return withExtendedLifetime(cell) { counts }
        }
        #expect(counts == [0, 1, 0])
    }

    @Test("a state is observed while a broadcaster sends it, and each version is published once")
    func observed() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let (observed, published) = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = _StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            var observed = [source.isObserved]
            let broadcaster = Broadcaster(source, shard: shard)
            source.attach(broadcaster)
            observed.append(source.isObserved)
            source.didChange(version: source.version + 1)
            let published = [source.publish(), source.publish()]
            source.detach(broadcaster)
            observed.append(source.isObserved)
            return withExtendedLifetime(cell) { (observed, published) }
        }
        #expect(observed == [false, true, false])
        #expect(published[0] >= EncodeBudget.minimumPerUpdate && published[1] == 0)
    }

    @Test("changes of an unobserved state cause no work, and the next subscriber starts with the latest version")
    func unobserved() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let (marked, beginning, encoded) = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = _StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            func observe() -> Broadcaster {
                let broadcaster = Broadcaster(source, shard: shard)
                source.attach(broadcaster)
                shard.endOfTurn()
                return broadcaster
            }
            var marked: [Bool] = []
            func change() {
                source.didChange(version: source.version + 1)
                marked.append(shard.isMarked)
                shard.endOfTurn()
            }
            let first = observe()
            change()
            source.detach(first)
            let before = source.encodeCount
            // The first change resets the sent position.
            for _ in 0..<3 { change() }
            let encoded = source.encodeCount - before
            let second = observe()
            let beginning = (second.newestSequence, source.version)
            change()
            source.detach(second)
            return withExtendedLifetime(cell) { (marked, beginning, encoded) }
        }
        #expect(marked == [true, true, false, false, true])
        #expect(beginning.0 == beginning.1 && encoded == 0)
    }

    @Test("the changes of a call become a version at the end of the call, not at the end of the turn")
    func versionOfCall() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let published = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = _StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            let broadcaster = Broadcaster(source, shard: shard)
            source.attach(broadcaster)
            source.didChange(version: source.version + 1)
            shard.callDidEnd()
            let published = source.publish()
            source.detach(broadcaster)
            return withExtendedLifetime(cell) { published }
        }
        #expect(published == 0, "no change is left to publish")
    }

    @Test("states that take long to encode are published in several turns, in order, and responses wait for theirs")
    func severalTurns() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let (parts, resumed) = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cells = (0..<4).map { _ in _StateCell<Int>() }
            var encoded: [Int] = []
            let sources = cells.enumerated().map { index, cell in
                cell.source(
                    home: shard,
                    access: StateAccess(
                        read: {
                            encoded.append(index)
                            let start = MonotonicClock.now
                            while MonotonicClock.now &- start < 2_000_000 {}
                            return 1
                        }, enter: { $0() }))
            }
            let broadcasters = sources.map { source in
                let broadcaster = Broadcaster(source, shard: shard)
                source.attach(broadcaster)
                return broadcaster
            }
            shard.endOfTurn()
            encoded = []
            var (parts, resumed): ([[Int]], [Int]) = ([], [])
            func change(_ range: Range<Int>) {
                for source in sources[range] { source.didChange(version: source.version + 1) }
                shard.whenPublished { resumed.append(encoded.count) }
            }
            change(0..<3)
            while !shard.publishMarked() {
                parts.append(encoded)
                if parts.count == 1 { change(3..<4) }
            }
            parts.append(encoded)
            shard.whenPublished { resumed.append(-1) }
            for (source, broadcaster) in zip(sources, broadcasters) { source.detach(broadcaster) }
            return withExtendedLifetime(cells) { (parts, resumed) }
        }
        // The time of the first state of a turn does not count.
        #expect(parts == [[0, 1], [0, 1, 2, 3]])
        #expect(resumed == [4, 4, -1])
    }

    /// A subscriber that counts its notifications.
    private final class Probe: StreamSubscriber {
        let isLocal: Bool
        var isAwaited: Bool { !isLocal }
        var isWritable: Bool { true }
        var shown = 0
        var willShow: () -> Void = {}

        init(isLocal: Bool) { self.isLocal = isLocal }

        func inOneWrite(_ body: () -> Void) { body() }
        func didBlock(_ subscription: StreamSubscription) {}
        func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {}
        func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {}
        func streamDidCatchUp() {
            willShow()
            shown += 1
        }
    }

    @Test(
        "a connection with waiting responses is notified that its stream is up to date, also with a local reader before it"
    )
    func awaitedBehindLocal() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let (shown, counted) = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = _StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            let probes = [Probe(isLocal: true), Probe(isLocal: false)]
            let broadcaster = Broadcaster(source, shard: shard)
            let subscriptions = probes.map {
                StreamSubscription(streamID: [], broadcaster: broadcaster, subscriber: $0, isFiltered: false)
            }
            for subscription in subscriptions { broadcaster.addSubscription(subscription) }
            source.attach(broadcaster)
            let counted = source.subscriberCount
            for subscription in subscriptions { broadcaster.remove(subscription) }
            return withExtendedLifetime((cell, probes)) { (probes[1].shown, counted) }
        }
        #expect(shown == 1)
        #expect(counted == 1, "the local reader does not count as a subscriber")
    }

    @Test("a snapshot that arrives together with the next version is sent before the stream counts as up to date")
    func overtakenWhole() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let (before, atEnd) = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = _StateCell<Int>()
            let source = cell.source(
                home: SystemShard(reactor, userInfo: [:]), access: StateAccess(read: { 1 }, enter: { _ in }))
            let broadcaster = Broadcaster(source, shard: shard)
            let probe = Probe(isLocal: false)
            let subscription = StreamSubscription(
                streamID: [], broadcaster: broadcaster, subscriber: probe, isFiltered: false)
            broadcaster.addSubscription(subscription)
            subscription.markSent(upTo: 1)
            let text = { (sequence: UInt64) in Array("\(sequence)".utf8).withUnsafeBytes { SharedBytes($0) } }
            let update = { (sequence: UInt64) in
                StateUpdate(
                    sequence: sequence, current: nil,
                    patch: StateUpdate.Patch(base: sequence - 1, sequence: sequence, suffix: text(sequence)),
                    snapshotByteCount: 100)
            }
            var log = VersionLog()
            log.append(update(5))
            broadcaster.receive(.attached(log))
            broadcaster.receive(.update(update(6)))
            let before = broadcaster.awaitsSnapshot
            probe.willShow = { broadcaster.catchUp(subscription) }
            broadcaster.receive(
                .snapshot(StateUpdate(sequence: 5, current: text(5), patch: nil, snapshotByteCount: 100)))
            defer { broadcaster.remove(subscription) }
            return withExtendedLifetime((cell, probe)) {
                (before, (probe.shown, subscription.sent, broadcaster.awaitsSnapshot))
            }
        }
        #expect(before && atEnd == (1, 6, false))
    }
}
