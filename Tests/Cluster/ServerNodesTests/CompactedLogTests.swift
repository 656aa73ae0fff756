import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

/// Streams that resume at an actor whose log was compacted meanwhile.
@Suite(.timeLimit(.minutes(5))) struct CompactedLogTests {
    private func sign(_ name: String, _ count: Int, through client: TextClient, from first: Int) async {
        // In batches within the limit of in-flight calls.
        for start in stride(from: 0, to: count, by: 500) {
            let end = min(start + 500, count)
            for number in start..<end { client.call(first + number, name, "sign(_:)", "[\(number)]") }
            #expect(await client.answer(first + end - 1)?.contains("result") == true)
        }
    }

    @Test("a client within the retained versions resumes at the next owner, wherever the last snapshot of the log is")
    func snapshotted() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let names = nodes[1].names("rolls", 12)
            var seen: [(start: TextClient.Message, last: TextClient.Message)] = []
            for (place, name) in names.enumerated() {
                let writer = try await nodes[1].textClient()
                await sign(name, 300 + 130 * place, through: writer, from: 1)
                let reader = try await nodes[0].textClient()
                reader.call(1, name, "observeCalls", "[]")
                #expect(await eventually { reader.versions.count == 1 })
                seen.append((try #require(reader.starts.first), try #require(reader.versions.first)))
                reader.abort()
                await sign(name, 150, through: writer, from: 10_000)
                writer.abort()
            }
            try await nodes[1].kill()
            let back = try await nodes[0].textClient()
            for (place, name) in names.enumerated() {
                let (start, last) = seen[place]
                back.resume(start, "r\(place)", name, behind: last.sequence, "observeCalls")
            }
            #expect(await eventually { back.starts.count == names.count })
            for place in names.indices {
                let start = try #require(back.starts.first { $0.callID == "r\(place)" })
                let last = seen[place].last.sequence
                #expect(
                    await eventually {
                        back.versions.filter { $0.streamID == start.streamID }.map(\.sequence)
                            == (1...150).map { last + $0 }
                    }, "behind \(last): \(back.messages.filter { $0.streamID == start.streamID }.suffix(1).map(\.text))"
                )
            }
            back.abort()
        }
    }
}
