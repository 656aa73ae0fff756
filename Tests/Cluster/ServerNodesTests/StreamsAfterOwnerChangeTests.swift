import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Streams whose actors move to another node.
@Suite(.timeLimit(.minutes(5))) struct StreamsAfterOwnerChangeTests {
    @Test("a stream that its client has resumed through another node continues without gaps when its owner dies")
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

    @Test("a client that resumes late at the next owner gets all changes made there before")
    func late() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let first = try await nodes[0].textClient()
            first.observe("1", name)
            #expect(await eventually { first.versions.count == 1 })
            first.call("2", name, "add(_:)", [1])
            #expect(await eventually { first.versions.count == 2 })
            first.abort()
            let (start, last) = try (#require(first.starts.first), #require(first.versions.last))
            try await nodes[1].kill()
            let second = try await nodes[0].textClient()
            let count = 1_000
            for number in 1...count { second.call("\(number)", name, "add(_:)", [1]) }
            #expect(await eventually { second.messages.count == count })
            second.resume(start, "r", name, behind: last.sequence)
            #expect(await eventually { second.versions.count == count })
            #expect(second.versions.map(\.sequence) == (1...count).map { last.sequence + $0 })
            second.abort()
        }
    }

    @Test("a stopping node also ends the streams that are being resumed at a next owner")
    func movedActor() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.observe("1", name)
            client.call(2, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            #expect(await eventually { client.versions.count == 2 })
            gate.set { $0.holdsMessages = true }
            nodes[0].server.context.nodes?.exchange.closeLostChannels(of: nodes[1].member.node)
            let stopping = Task { await nodes[0].server.shutdown(drain: .seconds(20)) }
            let begun = Set(client.starts.map(\.streamID))
            let ended = { Set(client.messages.filter { $0.type == "streamEnd" }.map(\.streamID)) }
            #expect(await eventually { ended() == begun })
            gate.set { $0.holdsMessages = false }
            client.abort()
            await stopping.value
        }
    }

    @Test("a stream ended by its client stays ended, also while it is being resumed elsewhere or its owner is silent")
    func ended() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate) { nodes in
            let (names, here) = (nodes[1].names(2), nodes[0].names("tills")[0])
            let client = try await nodes[0].textClient()
            for (number, name) in names.enumerated() {
                client.observe("\(number)", name)
                #expect(await eventually { client.versions.count == number + 1 })
            }
            gate.set { $0.holdsMessages = true }
            let end = { (start: TextClient.Message) in
                client.send("streamEnd", #""streamID":"\#(start.streamID)","reason":"clientUnsubscribed""#)
            }
            end(client.starts[0])
            #expect(await eventually { client.messages.count { $0.type == "streamEnd" } == 1 })
            nodes[0].server.context.nodes?.exchange.closeLostChannels(of: nodes[1].member.node)
            client.call("x", here, "none()")
            #expect(await eventually { client.answers("x").count == 1 })
            end(client.starts[1])
            client.call("y", here, "none()")
            #expect(await eventually { client.answers("y").count == 1 })
            gate.set { $0.holdsMessages = false }
            // No message about the streams follows.
            for name in names { client.call(name, name, "add(_:)", [1]) }
            #expect(await eventually { names.allSatisfy { client.answers($0).count == 1 } })
            let ends = client.messages.filter { $0.type == "streamEnd" }
            #expect(ends.map(\.streamID) == client.starts.map(\.streamID) && ends.count == 2)
            #expect(ends.allSatisfy { $0.text.contains("clientUnsubscribed") } && client.versions.count == 2)
            client.abort()
        }
    }

    @Test("a client resumes a stream at the next owner, even when the actor moves before it could be loaded")
    func movedUnloaded() async throws {
        let clock = ManualEngineClock()
        let engine = MemoryEngine(clock: clock)
        let engineRoute = FaultyEngine(engine)
        var limits = ServerLimits()
        // No stream may count twice.
        limits.streams.perConnection = 12
        let first = try Node("a", engine, through: engineRoute, limits: limits, clock: clock)
        let second = try Node("b", engine, clock: clock)
        try await first.start()
        await ownAll([first])
        let client = try await first.textClient()
        engineRoute.set { $0.isAway = true }
        let names = (0..<12).map { "tallies/\($0)" }
        for name in names {
            let seen = #""streamID":"s","epoch":"e","lastSequence":0"#
            client.send(
                "streamResume",
                #""callID":"\#(name)","actorID":"\#(name)","targetIdentifier":"observeCount",\#(seen)"#)
        }
        clock.advance(by: Node.settings.leaseDuration)
        try await second.start()
        #expect(await eventually { names.allSatisfy(second.owns) && first.member.slotCount == 0 })
        // Some of the requests are returned.
        engineRoute.set { $0.isAway = false }
        // An unchanged state may be sent again when its actor moves again.
        #expect(await eventually { Set(client.versions.map(\.streamID)).count == 12 })
        #expect(client.messages.allSatisfy { $0.error.isEmpty })
        client.abort()
        for node in [first, second] { await node.stop() }
    }

    @Test("a stream that its former owner starts after the notice of the next owner is resumed there")
    func lateStart() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            let other = try ClusterNode(name: "other")
            // The lookup of the owner ends with a notice of the true owner.
            client.call("1", name, "add(_:)", [1])
            #expect(await eventually { client.answers("1").count == 1 })
            for shard in nodes[0].server.shards {
                await shard.reactor.perform {
                    shard.node?.ownerDidChange(of: ClusterSlot(of: name), to: other, isHere: false)
                }
            }
            client.call(2, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            #expect(await eventually { client.starts.count == 2 && client.versions.count == 1 })
            client.call("3", name, "add(_:)", [1])
            #expect(await eventually { client.answers("3").count == 1 })
            #expect(client.versions.count == 2)
            client.abort()
        }
    }

    @Test("the response to a call follows its update, even while the client's stream is being resumed")
    func answersWait() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.call(1, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            #expect(await eventually { client.versions.count == 1 })
            // Simulates an owner that could not resume the stream: the request is repeated after a delay.
            for shard in nodes[0].server.shards {
                await shard.reactor.perform {
                    for relays in shard.connections.values.compactMap(\.callForwarder) {
                        for stream in Array(relays.streams.all) {
                            relays.streams.suspend(stream)
                            let input = ForwardedStream.Input.failed(
                                isTemporary: true, over: ForwardedStreams.silentChannel)
                            #expect(relays.handle(input, of: stream.streamID) == .pause)
                        }
                    }
                }
            }
            client.call("2", name, "add(_:)", [1])
            #expect(await eventually { client.answers("2").count == 1 })
            #expect(client.messages.prefix { $0.type != "response" }.filter { $0.type == "streamData" }.count == 2)
            client.abort()
        }
    }

    @Test(
        "a client sees its call's update before the response of the next owner, even when the previous owner is silent"
    )
    func silentOwner() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine), try Node("b", engine, through: gate), try Node("c", engine)]
        try await Node.with(nodes) {
            let names = nodes[1].names(16)
            let client = try await nodes[0].textClient()
            for name in names { client.observe("o\(name)", name) }
            #expect(await eventually { client.versions.count == 16 })
            gate.set { $0.holdsMessages = true }
            let draining = Task { await nodes[1].server.context.nodes?.member.drain() }
            #expect(await eventually { names.allSatisfy { nodes[0].owns($0) || nodes[2].owns($0) } })
            #expect(names.contains(where: nodes[0].owns) && names.contains(where: nodes[2].owns))
            let directory = nodes[0].server.context.nodes?.directory
            for name in names {
                directory?.invalidate(ClusterSlot(of: name), ownedBy: nodes[1].member.node)
                client.call("c\(name)", name, "add(_:)", [1])
            }
            #expect(await eventually { names.allSatisfy { client.answers("c\($0)").count == 1 } })
            for name in names {
                let before = client.messages.prefix { $0.callID != "c\(name)" }
                let streams = Set(before.filter { $0.callID == "o\(name)" }.map(\.streamID))
                let shown = before.filter { $0.type == "streamData" && streams.contains($0.streamID) }
                #expect(shown.count == 2, "\(name), now at \(nodes[0].owns(name) ? "a" : "c")")
            }
            gate.set { $0.holdsMessages = false }
            await draining.value
            client.abort()
        }
    }

    @Test("a stream that is being resumed waits for the coordination store for longer than the call timeout")
    func longOutage() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        var limits = ServerLimits()
        limits.calls.timeout = .milliseconds(500)
        let node = try Node("a", engine, through: engineRoute, limits: limits)
        try await Node.with([node]) {
            let name = node.names(1)[0]
            let client = try await node.textClient()
            engineRoute.set { $0.hangsReads = true }
            client.send(
                "streamResume",
                #""callID":"1","actorID":"\#(name)","targetIdentifier":"observeCount","streamID":"s","epoch":"e","lastSequence":0"#
            )
            // Two calls in succession: after the second, all work that began before the first is complete.
            for call in ["2", "3"] {
                client.call(call, name, "add(_:)", [1])
                #expect(await eventually { client.answers(call).count == 1 })
            }
            #expect(client.answers("1").isEmpty && client.messages.allSatisfy { $0.type != "streamError" })
            engineRoute.set { $0.hangsReads = false }
            #expect(await eventually { client.versions.count == 1 })
            client.abort()
        }
    }

    @Test(
        "a client that has seen an unchanged state gets each version made by the next owner before the stream resumes")
    func unchanged() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine, through: gate), try Node("b", engine), try Node("c", engine)]
        try await Node.with(nodes) {
            let names = nodes[1].names(8)
            let observer = try await nodes[0].textClient()
            for (number, name) in names.enumerated() {
                observer.observe("o\(number)", name)
                #expect(await eventually { observer.versions.count == number + 1 })
            }
            let seen = observer.versions
            observer.abort()
            try await nodes[1].kill()
            let client = try await nodes[2].client()
            for name in names {
                for count in 1...3 { #expect(try await client.resolve(Tally.self, id: name).add(1) == count) }
            }
            let back = try await nodes[0].textClient()
            for (number, name) in names.enumerated() {
                let stream = try #require(
                    observer.starts.first { $0.callID == "o\(number)" || $0.streamID == seen[number].streamID })
                back.resume(stream, "r\(number)", name, behind: seen[number].sequence)
                // Exactly the three deltas, and no snapshot.
                #expect(
                    await eventually { back.versions.count { $0.streamID == stream.streamID } == 3 }, "\(back.texts)")
            }
            back.abort()
        }
    }

    @Test("streams started in succession under one callID all continue")
    func sameCallID() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let names = nodes[1].names(3)
            let client = try await nodes[0].textClient()
            for (count, name) in names.enumerated() {
                client.observe("s", name)
                #expect(await eventually { client.versions.count == count + 1 })
            }
            try await nodes[1].kill()
            #expect(await eventually { client.starts.count == 6 })
            for name in names { client.call(name, name, "add(_:)", [1]) }
            for start in client.starts.suffix(3) {
                let isShown = { client.versions.contains { $0.streamID == start.streamID && $0.text.contains(":1}") } }
                #expect(await eventually { isShown() })
            }
            client.abort()
        }
    }

    @Test(
        "streams continue at their next owner regardless of rate limits for calls",
        arguments: [["a", "b"], ["a", "b", "c"]])
    func rates(names: [String]) async throws {
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 1, burst: 20)
        try await withNodes(names, limits: limits) { nodes in
            let client = try await nodes[0].textClient()
            let others = try await nodes[0].textClient()
            let names = nodes[1].names(40)
            for (number, name) in names.enumerated() {
                (number < 20 ? client : others).observe("s\(number)", name)
            }
            #expect(await eventually { client.versions.count == 20 && others.versions.count == 20 })
            try await nodes[1].kill()
            for each in [client, others] {
                #expect(await eventually { each.starts.count == 40 })
                #expect(each.messages.allSatisfy { $0.error.isEmpty })
                each.abort()
            }
        }
    }

    @Test("the first local subscriber of a stream resumed by another client gets its value, even before any change")
    func behindResumedStreams() async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let names = nodes[1].names(12)
            let before = try await nodes[1].textClient()
            for (number, name) in names.enumerated() {
                before.observe("o\(number)", name)
                #expect(await eventually { before.versions.count == number + 1 })
            }
            for (number, name) in names.enumerated() {
                before.call(number, name, "add(_:)", "[1]")
                #expect(await before.answer(number) != nil)
            }
            #expect(await eventually { before.versions.count == 2 * names.count })
            try await nodes[1].kill()
            await ownAll([nodes[0], nodes[2]])
            let places = names.indices.filter { nodes[2].owns(names[$0]) }.prefix(3)
            #expect(!places.isEmpty)
            for place in places {
                let start = try #require(before.starts.first { $0.callID == "o\(place)" })
                let last = try #require(before.versions.last { $0.streamID == start.streamID })
                let (after, other) = (try await nodes[0].textClient(), try await nodes[0].textClient())
                after.resume(start, "r", names[place], behind: last.sequence)
                #expect(await eventually { after.starts.count == 1 })
                other.observe("o", names[place])
                #expect(await eventually { other.versions.count == 1 })
                #expect(other.versions.first?.text.contains(#""data":1"#) == true)
                // A client that has the value is sent nothing.
                after.call(1, names[place], "add(_:)", "[1]")
                #expect(await after.answer(1) != nil)
                #expect(after.versions.map(\.sequence) == [last.sequence + 1])
                for client in [after, other] { client.abort() }
            }
            before.abort()
        }
    }
}
