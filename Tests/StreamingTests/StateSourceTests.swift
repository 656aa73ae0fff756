import Networking
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite(.timeLimit(.minutes(1))) struct StateSourceTests {
    @Test("a node whose last subscriber has gone is not attached any more, also when it was detached first")
    func lateAttach() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let counts = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            let gone = StateNode(source, shard: shard)
            source.detach(gone)
            source.attach(gone)
            var counts = [source.nodeCount]
            let node = StateNode(source, shard: shard)
            source.attach(node)
            counts.append(source.nodeCount)
            source.detach(node)
            counts.append(source.nodeCount)
            return withExtendedLifetime(cell) { counts }
        }
        #expect(counts == [0, 1, 0])
    }

    @Test("a state is observed while a node sends it, and a version is published once")
    func observed() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let (observed, published) = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            var observed = [source.isObserved]
            let node = StateNode(source, shard: shard)
            source.attach(node)
            observed.append(source.isObserved)
            source.didChange(version: source.version + 1)
            let published = [source.publish(), source.publish()]
            source.detach(node)
            observed.append(source.isObserved)
            return withExtendedLifetime(cell) { (observed, published) }
        }
        #expect(observed == [false, true, false])
        #expect(published[0] >= SystemShard.leastEagerBytes && published[1] == 0)
    }

    @Test("what a call changed becomes a version at its end, not at the turn's")
    func versionOfCall() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let published = await reactor.perform {
            let shard = SystemShard(reactor, userInfo: [:])
            let cell = StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            let node = StateNode(source, shard: shard)
            source.attach(node)
            source.didChange(version: source.version + 1)
            shard.callDidEnd()
            let published = source.publish()
            source.detach(node)
            return withExtendedLifetime(cell) { published }
        }
        #expect(published == 0, "there is nothing left to publish")
    }
}
