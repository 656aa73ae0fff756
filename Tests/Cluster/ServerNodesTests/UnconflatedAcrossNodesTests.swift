import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

/// Subscribers without conflation, and subscribers of events, at the next owner of an actor.
@Suite(.timeLimit(.minutes(5))) struct UnconflatedAcrossNodesTests {
    @Test("a subscriber gets each version at the next owner, also those being written when another subscriber joins")
    func newSubscriber() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine, through: gate), try Node("b", engine)]
        try await Node.with(nodes) {
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.observe("1", name)
            #expect(await eventually { client.versions.count == 1 })
            client.call("c1", name, "add(_:)", [1])
            #expect(await eventually { client.versions.count == 2 })
            try await nodes[1].kill()
            #expect(await eventually { client.starts.count == 2 })
            // The response shows that the actor is loaded and no write is in progress.
            client.call("c2", name, "add(_:)", [0])
            #expect(await eventually { client.answers("c2").count == 1 })
            gate.set { $0.hangsAppends = true }
            for call in ["c3", "c4"] { client.call(call, name, "add(_:)", [1]) }
            // The next owner has loaded the actor from its log, and has no snapshot for new subscribers.
            client.observe("2", name)
            #expect(await eventually { client.starts.count == 3 })
            gate.set { $0.hangsAppends = false }
            #expect(await eventually { client.answers("c4").count == 1 })
            client.call("c5", name, "add(_:)", [1])
            #expect(await eventually { client.answers("c5").count == 1 })
            let last = client.starts[2].streamID
            #expect(await eventually { client.versions.last { $0.streamID == last }?.text.contains(":4}") == true })
            #expect(client.versions.filter { $0.streamID != last }.map(\.sequence) == Array(1...5), "\(client.texts)")
            #expect(client.messages.allSatisfy { $0.error.isEmpty })
            client.abort()
        }
    }

    @Test(
        "versions that an owner has written together are delivered one by one to a client that resumes at the next owner"
    )
    func writtenTogether() async throws {
        try await withLostOwner(of: "tallies") { owner, gate, name in
            owner.observe("m", name, "observeMarks")
            #expect(await eventually { owner.starts.count == 1 })
            gate.set { $0.hangsAppends = true }
            for number in 1...200 { owner.call("\(number)", name, "add(_:)", [1]) }
            // Events are not delayed by writes: each call has run when its event arrives.
            #expect(await eventually { owner.versions.count == 200 })
            gate.set { $0.hangsAppends = false }
            #expect(await eventually { (1...200).allSatisfy { owner.answers("\($0)").count == 1 } })
            return 200
        }
    }

    @Test("versions whose first write failed are delivered one by one to a client that resumes at the next owner")
    func writtenAgain() async throws {
        try await withLostOwner(of: "tallies") { owner, gate, name in
            let before = gate.appendCount
            gate.set { $0.failsAppends = true }
            for number in 1...3 { owner.call("\(number)", name, "add(_:)", [1]) }
            #expect(await eventually { gate.appendCount > before })
            gate.set { $0.failsAppends = false }
            owner.call("4", name, "add(_:)", [1])
            #expect(await eventually { (1...4).allSatisfy { owner.answers("\($0)").count == 1 } })
            return 4
        }
    }

    /// Resumes a stream at the next owner after the previous owner has made more versions and was lost.
    ///
    /// - Parameter change: makes versions at the owner, through a gate to the coordination store. Returns their number.
    private func withLostOwner(
        of names: String, _ change: (TextClient, FaultyEngine, String) async throws -> Int
    ) async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine), try Node("b", engine, through: gate)]
        try await Node.with(nodes) {
            let name = nodes[1].names(names)[0]
            let first = try await nodes[1].textClient()
            first.observe("1", name)
            #expect(await eventually { first.versions.count == 1 })
            first.call("c", name, "add(_:)", [1])
            #expect(await eventually { first.versions.count == 2 })
            let (start, seen) = try (#require(first.starts.first), #require(first.versions.last))
            first.abort()
            let owner = try await nodes[1].textClient()
            let count = try await change(owner, gate, name)
            owner.abort()
            try await nodes[1].kill()
            let back = try await nodes[0].textClient()
            back.resume(start, "r", name, behind: seen.sequence)
            #expect(
                await eventually { back.versions.map(\.sequence) == (1...count).map { seen.sequence + $0 } },
                "\(back.texts.suffix(2))")
            back.abort()
        }
    }

    @Test("events whose first write failed follow those of the previous owner, also at the next one")
    func eventsWrittenAgain() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine), try Node("b", engine, through: gate), try Node("c", engine)]
        try await Node.with(nodes) {
            let names = nodes[0].names("chimes", 12)
            let first = try await nodes[0].textClient()
            for name in names {
                first.observe("o\(name)", name, "observeStrikes")
                #expect(await eventually { first.starts.contains { $0.callID == "o\(name)" } })
                for number in 1...2 { first.call("\(number)\(name)", name, "strike(_:)", [number]) }
            }
            #expect(await eventually { first.versions.count == 2 * names.count })
            first.abort()
            try await nodes[0].kill()
            #expect(await eventually { names.allSatisfy { nodes[1].owns($0) || nodes[2].owns($0) } })
            let name = try #require(names.first(where: nodes[1].owns))
            let start = try #require(first.starts.first { $0.callID == "o\(name)" })
            let second = try await nodes[1].textClient()
            second.call("2", name, "strike(_:)", [3])
            #expect(await eventually { second.answers("2").count == 1 })
            let before = gate.appendCount
            gate.set { $0.failsAppends = true }
            second.call("3", name, "strike(_:)", [4])
            #expect(await eventually { gate.appendCount > before })
            gate.set { $0.failsAppends = false }
            second.call("4", name, "strike(_:)", [5])
            #expect(await eventually { second.answers("3").count == 1 && second.answers("4").count == 1 })
            second.abort()
            try await nodes[1].kill()
            let back = try await nodes[2].textClient()
            back.resume(start, "r", name, behind: 2, "observeStrikes")
            #expect(await eventually { back.versions.map(\.sequence) == [3, 4, 5] }, "\(back.texts)")
            back.abort()
        }
    }
}
