import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Streams whose actors go to another node.
@Suite(.timeLimit(.minutes(1))) struct MovedStreamsTests {
    @Test("a stream that its client took up again through another node goes on with each version when its owner dies")
    func resumed() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let first = try await nodes[0].textClient()
            first.observe("1", name)
            #expect(await eventually { first.versions.count == 1 })
            for number in 1...3 { first.call("c\(number)", name, "add(_:)", [1]) }
            #expect(await eventually { first.versions.count == 4 })
            first.abort()
            let (start, last) = try (#require(first.starts.first), #require(first.versions.last))
            let second = try await nodes[0].textClient()
            second.resume(start, "1", name, behind: last.sequence)
            #expect(await eventually { second.starts.count == 1 })
            try await nodes[1].kill()
            for number in 1...3 { second.call("d\(number)", name, "add(_:)", [1]) }
            #expect(await eventually { second.answers("d3").count == 1 })
            #expect(await eventually { second.versions.map(\.sequence) == (1...3).map { last.sequence + $0 } })
            second.abort()
        }
    }
}
