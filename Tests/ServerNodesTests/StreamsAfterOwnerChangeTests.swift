import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

/// Streams whose actors go to another node.
@Suite(.timeLimit(.minutes(5))) struct StreamsAfterOwnerChangeTests {
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

    @Test("who comes back late to a next owner gets what others have changed there before")
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

    @Test("a node that is stopped sends away the streams, too, which are just being taken up at a next owner")
    func sentAway() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.observe("1", name)
            client.call(2, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            #expect(await eventually { client.versions.count == 2 })
            gate.set { $0.holdsMessages = true }
            nodes[0].server.context.nodes?.exchange.lose(nodes[1].member.node)
            let stopping = Task { await nodes[0].server.shutdown(drain: .seconds(20)) }
            let begun = Set(client.starts.map(\.streamID))
            let ended = { Set(client.messages.filter { $0.type == "streamEnd" }.map(\.streamID)) }
            #expect(await eventually { ended() == begun })
            gate.set { $0.holdsMessages = false }
            client.abort()
            await stopping.value
        }
    }

    @Test(
        "a stream that its client ends has ended for it, also while it is taken up elsewhere, and when its owner says nothing more"
    )
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
            nodes[0].server.context.nodes?.exchange.lose(nodes[1].member.node)
            client.call("x", here, "none()")
            #expect(await eventually { client.answers("x").count == 1 })
            end(client.starts[1])
            client.call("y", here, "none()")
            #expect(await eventually { client.answers("y").count == 1 })
            gate.set { $0.holdsMessages = false }
            // Nothing more is said of them then.
            for name in names { client.call(name, name, "add(_:)", [1]) }
            #expect(await eventually { names.allSatisfy { client.answers($0).count == 1 } })
            let ends = client.messages.filter { $0.type == "streamEnd" }
            #expect(ends.map(\.streamID) == client.starts.map(\.streamID) && ends.count == 2)
            #expect(ends.allSatisfy { $0.text.contains("clientUnsubscribed") } && client.versions.count == 2)
            client.abort()
        }
    }

    @Test("who goes on with a stream gets it from its next owner, also when its actor moves while it cannot be loaded")
    func movedUnloaded() async throws {
        let clock = ManualEngineClock()
        let engine = MemoryEngine(clock: clock)
        let way = FaultyEngine(engine)
        var limits = ServerLimits()
        // None has room that counts twice.
        limits.streamsPerConnection = 12
        let first = try Node("a", engine, through: way, limits: limits, clock: clock)
        let second = try Node("b", engine, clock: clock)
        try await first.start()
        await ownAll([first])
        let client = try await first.textClient()
        way.set { $0.isAway = true }
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
        // Some of them come back.
        way.set { $0.isAway = false }
        // One that has never changed may come anew when its actor moves again.
        #expect(await eventually { Set(client.versions.map(\.streamID)).count == 12 })
        #expect(client.messages.allSatisfy { $0.error.isEmpty })
        client.abort()
        for node in [first, second] { await node.stop() }
    }

    @Test(
        "the answer of a call comes behind what it has changed, also where its client's stream is being taken up just then"
    )
    func answersWait() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.call(1, name, "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            #expect(await eventually { client.versions.count == 1 })
            // The owner could not go on with it, say: it is asked again in a while.
            for shard in nodes[0].server.shards {
                await shard.reactor.perform {
                    for relays in shard.connections.values.compactMap(\.forwarder) {
                        for (streamID, stream) in relays.streams {
                            relays.streams[streamID] = nil
                            relays.scheduleResume(stream)
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
        "who calls an actor at its next owner sees what the call changed before its answer, also when the owner before says nothing"
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

    @Test("a stream that is taken up waits for its actor's engine for longer than a call may take")
    func longOutage() async throws {
        let engine = MemoryEngine()
        let way = FaultyEngine(engine)
        var limits = ServerLimits()
        limits.callTimeout = .milliseconds(500)
        let node = try Node("a", engine, through: way, limits: limits)
        try await Node.with([node]) {
            let name = node.names(1)[0]
            let client = try await node.textClient()
            way.set { $0.hangsReads = true }
            client.send(
                "streamResume",
                #""callID":"1","actorID":"\#(name)","targetIdentifier":"observeCount","streamID":"s","epoch":"e","lastSequence":0"#
            )
            // Two, one after the other: behind the second all is over that began before the first.
            for call in ["2", "3"] {
                client.call(call, name, "add(_:)", [1])
                #expect(await eventually { client.answers(call).count == 1 })
            }
            #expect(client.answers("1").isEmpty && client.messages.allSatisfy { $0.type != "streamError" })
            way.set { $0.hangsReads = false }
            #expect(await eventually { client.versions.count == 1 })
            client.abort()
        }
    }

    @Test(
        "who has seen a state that never changed gets each version that its next owner makes before the stream is back")
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
                // Each of the three, and nothing whole.
                #expect(
                    await eventually { back.versions.count { $0.streamID == stream.streamID } == 3 }, "\(back.texts)")
            }
            back.abort()
        }
    }

    @Test("streams that were begun one after the other under one callID all go on")
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
        "streams go on at their next owner whatever rates there are for calls",
        arguments: [["a", "b"], ["a", "b", "c"]])
    func rates(names: [String]) async throws {
        var limits = ServerLimits()
        limits.callsPerConnectionRate = RateLimit(callsPerSecond: 1, burst: 20)
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

    @Test("who observes first what a client of a lost node goes on with gets its value, also before anything changes")
    func behindWhoGoesOn() async throws {
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
                // Who has it is sent nothing.
                after.call(1, names[place], "add(_:)", "[1]")
                #expect(await after.answer(1) != nil)
                #expect(after.versions.map(\.sequence) == [last.sequence + 1])
                for client in [after, other] { client.abort() }
            }
            before.abort()
        }
    }
}
