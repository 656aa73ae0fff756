import Testing
import TrebuchetCluster

@testable import Trebuchet

/// What a node writes of its cluster into the log.
@Suite struct NodeLogTests {
    private let one: ClusterNode
    private let two: ClusterNode
    private let away = ClusterEngineError(.unavailable, "connection refused")

    init() throws { (one, two) = (try ClusterNode(name: "one"), try ClusterNode(name: "two")) }

    private func seconds(_ count: Double) -> UInt64 { UInt64(count * 1e9) }

    @Test("who comes and goes is told at once, and slots when their number has come to rest")
    func nodes() {
        var log = NodeLog(one)
        #expect(
            log.lines(living: [one], slots: 10, trouble: nil, at: 0) == ["cluster: one is there; 1 nodes live"])
        #expect(log.lines(living: [one], slots: 1_024, trouble: nil, at: seconds(1)) == [])
        #expect(
            log.lines(living: [one], slots: 1_024, trouble: nil, at: seconds(3))
                == ["cluster: node one owns 1024 of 1024 slots"])
        #expect(log.lines(living: [one], slots: 1_024, trouble: nil, at: seconds(4)) == [])
        #expect(
            log.lines(living: [two], slots: 1_024, trouble: nil, at: seconds(5))
                == ["cluster: one is gone, two is there; 1 nodes live"])
    }

    @Test("an engine that is away for more than a moment is told of, and when it is back")
    func engine() {
        var log = NodeLog(one)
        #expect(log.lines(living: [], slots: 0, trouble: away, at: 0) == [])
        #expect(log.lines(living: [], slots: 0, trouble: nil, at: seconds(1)) == [])
        #expect(log.lines(living: [], slots: 0, trouble: away, at: seconds(2)) == [])
        #expect(
            log.lines(living: [], slots: 0, trouble: away, at: seconds(4))
                == ["cluster: the engine does not answer as it should: connection refused"])
        #expect(log.lines(living: [], slots: 0, trouble: away, at: seconds(5)) == [])
        #expect(log.lines(living: [], slots: 0, trouble: nil, at: seconds(6)) == ["cluster: the engine answers again"])
    }

    @Test("another node of the same name is told of once it cannot be an earlier life of this one")
    func namesake() throws {
        var log = NodeLog(one)
        let other = try ClusterNode(name: "one")
        _ = log.lines(living: [one, other], slots: 0, trouble: nil, at: 0)
        #expect(log.lines(living: [one, other], slots: 0, trouble: nil, at: seconds(14)) == [])
        let lines = log.lines(living: [one, other], slots: 0, trouble: nil, at: seconds(15))
        #expect(lines == ["cluster: another node is called one too: give each a name of its own"])
        #expect(log.lines(living: [one, other], slots: 0, trouble: nil, at: seconds(16)) == [])
    }
}
