import Testing
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The lines about the cluster in a node's log.
@Suite struct NodeLogTests {
    private let one: ClusterNode
    private let two: ClusterNode
    private let away = ClusterEngineError(.unavailable, "connection refused")

    init() throws { (one, two) = (try ClusterNode(name: "one"), try ClusterNode(name: "two")) }

    private func seconds(_ count: Double) -> UInt64 { UInt64(count * 1e9) }

    @Test("joining and leaving nodes are logged immediately, and slots when their number is stable")
    func nodes() {
        var log = NodeLog(one)
        #expect(
            log.lines(nodes: [one], slots: 10, engineError: nil, at: 0) == [.init(.notice, "one joined; 1 live node")])
        #expect(log.lines(nodes: [one], slots: 1_024, engineError: nil, at: seconds(1)) == [])
        #expect(
            log.lines(nodes: [one], slots: 1_024, engineError: nil, at: seconds(3))
                == [.init(.notice, "node one owns 1024 of 1024 slots")])
        #expect(log.lines(nodes: [one], slots: 1_024, engineError: nil, at: seconds(4)) == [])
        #expect(
            log.lines(nodes: [two], slots: 1_024, engineError: nil, at: seconds(5))
                == [.init(.notice, "one left, two joined; 1 live node")])
    }

    @Test("a coordination store unavailable for more than a moment is logged, and its recovery")
    func engine() {
        var log = NodeLog(one)
        #expect(log.lines(nodes: [], slots: 0, engineError: away, at: 0) == [])
        #expect(log.lines(nodes: [], slots: 0, engineError: nil, at: seconds(1)) == [])
        #expect(log.lines(nodes: [], slots: 0, engineError: away, at: seconds(2)) == [])
        #expect(
            log.lines(nodes: [], slots: 0, engineError: away, at: seconds(4))
                == [.init(.error, "the coordination store is failing: connection refused")])
        #expect(log.lines(nodes: [], slots: 0, engineError: away, at: seconds(5)) == [])
        #expect(
            log.lines(nodes: [], slots: 0, engineError: nil, at: seconds(6)) == [
                .init(.notice, "the coordination store responds again")
            ])
    }

    @Test("another node of the same name is logged once it cannot be an earlier incarnation of this one")
    func namesake() throws {
        var log = NodeLog(one)
        let other = try ClusterNode(name: "one")
        _ = log.lines(nodes: [one, other], slots: 0, engineError: nil, at: 0)
        for time in 1...14 {
            #expect(log.lines(nodes: [one, other], slots: 0, engineError: nil, at: seconds(Double(time))) == [])
        }
        let lines = log.lines(nodes: [one, other], slots: 0, engineError: nil, at: seconds(15))
        #expect(lines == [.init(.warning, "another node is also named one: give each node a unique name")])
        #expect(log.lines(nodes: [one, other], slots: 0, engineError: nil, at: seconds(16)) == [])
    }

    @Test("a node that cannot serve is logged once with the reason, and its recovery; not before it could first serve")
    func problem() {
        var log = NodeLog(one)
        func lines(_ problem: String?, _ time: Double) -> [NodeLog.Line] {
            log.lines(nodes: [], slots: 0, engineError: nil, problem: problem, at: seconds(time))
        }
        #expect(lines("not yet", 0) == [] && lines(nil, 1) == [])
        #expect(lines("no slots", 2) == [.init(.error, "node one cannot serve: no slots")])
        #expect(lines("still none", 3) == [])
        #expect(lines(nil, 4) == [.init(.notice, "node one can serve again")])
    }

    @Test("the suspension of a process is logged with its duration")
    func suspendedProcess() {
        var log = NodeLog(one)
        _ = log.lines(nodes: [], slots: 0, engineError: nil, at: seconds(1))
        #expect(log.lines(nodes: [], slots: 0, engineError: nil, at: seconds(2)) == [])
        let lines = log.lines(nodes: [], slots: 0, engineError: nil, at: seconds(22))
        #expect(lines.map(\.level) == [.warning])
        #expect(lines.first?.text.hasPrefix("cluster: this process was suspended for 20 s") == true)
    }
}
