import Networking
import Testing
import TrebuchetWire

@testable import Trebuchet

@Suite(.timeLimit(.minutes(1))) struct StateSourceTests {
    @Test("a node whose last subscriber has gone is not attached any more, also when it was detached first")
    func lateAttach() async throws {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let counts = await reactor.perform {
            let shard = ReactorShard(reactor, userInfo: [:])
            let cell = StateCell<Int>()
            let source = cell.source(home: shard, access: StateAccess(read: { 1 }, enter: { $0() }))
            let gone = StateNode(source, version: .v3, shard: shard)
            source.detach(gone)
            source.attach(gone)
            var counts = [source.nodeCount]
            let node = StateNode(source, version: .v3, shard: shard)
            source.attach(node)
            counts.append(source.nodeCount)
            source.detach(node)
            counts.append(source.nodeCount)
            return withExtendedLifetime(cell) { counts }
        }
        #expect(counts == [0, 1, 0])
    }
}
