import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Responses and streams of actors that move to another node while operations there are slow.
@Suite(.timeLimit(.minutes(5))) struct ResponsesAfterOwnerChangeTests {
    static let distinct = #","filter":{"distinct":true}"#

    /// Settings with a short handover timeout.
    static var settings: ClusterMemberSettings {
        var settings = Node.settings
        settings.handoverTimeout = .milliseconds(300)
        return settings
    }

    /// Adds one to each actor, and expects each response after the update that shows the change.
    private func add(_ names: [String], through client: TextClient, _ place: String = "") async {
        let before = names.map { client.shown(of: "\($0.hashNumber)", before: "") }
        let began = ContinuousClock.now
        for name in names { client.call("c\(name)", name, "add(_:)", [1]) }
        #expect(await eventually { names.allSatisfy { client.answers("c\($0)").count == 1 } })
        for (name, before) in zip(names, before) {
            let answer = client.answers("c\(name)").first?.text ?? ""
            #expect(
                client.shown(of: "\(name.hashNumber)", before: "c\(name)") > before,
                "\(place) \(name): \(answer) came within \(ContinuousClock.now - began) with nothing shown of it before: \(client.texts(about: name))"
            )
        }
    }

    private func observe(_ names: [String], through client: TextClient, filter: String = "") async {
        for name in names { client.call(name.hashNumber, name, "observeCount", "[]", more: filter) }
        #expect(await eventually { client.versions.count == names.count })
    }

    @Test("a response of the next owner follows the update of a filtered stream when the previous owner is silent")
    func silentOwnerOfFiltered() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        // It rarely lists the live nodes: meanwhile it does not know that the previous owner is gone.
        var settings = Node.settings
        settings.roundInterval = .seconds(3)
        let nodes = [
            try Node("a", engine, settings: settings), try Node("b", engine, through: gate), try Node("c", engine),
        ]
        try await Node.with(nodes) {
            let names = nodes[1].names(16)
            let client = try await nodes[0].textClient()
            await observe(names, through: client, filter: Self.distinct)
            gate.set { $0.holdsMessages = true }
            let draining = Task { await nodes[1].server.context.nodes?.drain(within: .seconds(300)) }
            #expect(await eventually { names.count(where: nodes[2].owns) > 3 })
            let directory = nodes[0].server.context.nodes?.directory
            for name in names { directory?.invalidate(ClusterSlot(of: name), ownedBy: nodes[1].member.node) }
            await add(names.filter(nodes[2].owns), through: client, "now at a third node:")
            gate.set { $0.holdsMessages = false }
            await draining.value
            client.abort()
        }
    }

    @Test(
        "a response of the next owner follows its stream's update, even when the previous owner exceeds the handover timeout",
        arguments: [
            (1, ""), (1, ResponsesAfterOwnerChangeTests.distinct), (0, ResponsesAfterOwnerChangeTests.distinct),
            (0, ""),
        ])
    func longHandover(place: Int, filter: String) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [
            try Node("a", engine, settings: Self.settings),
            try Node("b", engine, through: engineRoute, settings: Self.settings),
        ]
        let third = try Node("c", engine, settings: Self.settings)
        try await Node.with(nodes) {
            let tags = Array((0...).lazy.filter { nodes[1].owns("tallies/{\($0)}x") }.prefix(24))
            let client = try await nodes[place].textClient()
            let names = tags.map { "tallies/{\($0)}x" }
            await observe(names, through: client, filter: filter)
            // Other actors of these slots are being loaded.
            engineRoute.set { $0.hangsReads = true }
            let other = try await nodes[1].textClient()
            for tag in tags { other.call("\(tag)", "tallies/{\(tag)}y", "add(_:)", [1]) }
            #expect(await eventually { engineRoute.readCount >= tags.count })
            try await third.start()
            #expect(await eventually { names.count(where: third.owns) > 3 })
            await add(names.filter(third.owns), through: client, "client at \(place), filter '\(filter)':")
            engineRoute.set { $0.hangsReads = false }
            for client in [client, other] { client.abort() }
        }
        await third.stop()
    }

    @Test("a response follows the update of a stream requested at an intermediate owner that could not load the actor")
    func ownerBetween() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [
            try Node("a", engine, settings: Self.settings), try Node("b", engine, settings: Self.settings),
            try Node("c", engine, through: engineRoute, settings: Self.settings),
        ]
        try await Node.with(nodes) {
            let names = nodes[1].names(16)
            let client = try await nodes[0].textClient()
            await observe(names, through: client)
            engineRoute.set { $0.hangsReads = true }
            try await nodes[1].kill()
            #expect(await eventually { names.allSatisfy { nodes[0].owns($0) || nodes[2].owns($0) } })
            let between = names.filter(nodes[2].owns)
            #expect(!between.isEmpty)
            #expect(await eventually { engineRoute.readCount >= between.count })
            let draining = Task { await nodes[2].server.context.nodes?.drain(within: .seconds(300)) }
            #expect(await eventually { between.allSatisfy(nodes[0].owns) })
            await add(between, through: client)
            engineRoute.set { $0.hangsReads = false }
            await draining.value
            client.abort()
        }
    }

    @Test("a response follows the update of a stream that is requested again here after its actor could not be loaded")
    func askedAgainHere() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [try Node("a", engine, through: engineRoute), try Node("b", engine)]
        try await Node.with(nodes) {
            let names = nodes[1].names(6)
            let client = try await nodes[0].textClient()
            await observe(names, through: client)
            engineRoute.set { $0.hangsReads = true }
            try await nodes[1].kill()
            #expect(await eventually { names.allSatisfy(nodes[0].owns) && engineRoute.readCount >= names.count })
            engineRoute.set { ($0.isAway, $0.hangsReads) = (true, false) }
            #expect(await eventually { await nodes[0].resuming() == names.count && engineRoute.readCount == 0 })
            engineRoute.set { $0.isAway = false }
            await add(names, through: client)
            client.abort()
        }
    }

    @Test("a stream ended by its client while its actor is being loaded at the client's node stays ended")
    func endedWhileLoaded() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [try Node("a", engine, through: engineRoute), try Node("b", engine)]
        try await Node.with(nodes) {
            let (name, here) = (nodes[1].names(1)[0], nodes[0].names("boards")[0])
            let client = try await nodes[0].textClient()
            await observe([name], through: client)
            engineRoute.set { $0.hangsReads = true }
            try await nodes[1].kill()
            #expect(await eventually { nodes[0].owns(name) && engineRoute.readCount > 0 })
            try client.unsubscribe(#require(client.starts.first))
            client.call("ping", here, "step()")
            #expect(await eventually { client.answers("ping").count == 1 })
            #expect(client.messages.count { $0.type == "streamEnd" } == 1, "the end of the stream is not confirmed")
            engineRoute.set { $0.hangsReads = false }
            client.call("add", name, "add(_:)", [1])
            #expect(await eventually { client.answers("add").count == 1 })
            client.call("again", name, "add(_:)", [1])
            #expect(await eventually { client.answers("again").count == 1 })
            #expect(
                client.starts.count == 1 && client.versions.count == 1,
                "the stream continues: \(client.texts.suffix(6))")
            client.abort()
        }
    }

    @Test(
        "a response follows its stream's update, also for a call received in the turn in which this node acquires the slot"
    )
    func sameTurn() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names("boards")[0]
            let client = try await nodes[0].textClient()
            client.call(1, name, "observeSteps", "[]")
            #expect(await eventually { client.versions.count == 1 })
            let draining = Task {
                for shard in nodes[0].server.shards {
                    await shard.reactor.perform {
                        let own = shard.connections.values.filter { $0.upstream == nil && !$0.isServer }
                        guard let connection = own.first(where: { !$0.streams.isEmpty }) else { return }
                        Task { await nodes[1].server.context.nodes?.drain(within: .seconds(300)) }
                        // A long turn, and the call that the socket receives meanwhile.
                        while !nodes[0].owns(name) {}
                        let place = #""actorID":"\#(name)","targetIdentifier":"step()","arguments":[]"#
                        let text = #"{"type":"invocation","payload":{"callID":"c",\#(place)}}"#
                        Array(text.utf8).withUnsafeBytes { connection.receive($0) }
                    }
                }
            }
            await draining.value
            #expect(await eventually { client.answers("c").count == 1 })
            #expect(await eventually { client.versions.count > 1 })
            #expect(client.shown(of: "1", before: "c") > 1, "\(client.texts)")
            client.abort()
        }
    }

    /// Reads the actors while other actors of their slots are being loaded, until all have responded.
    private func readStates(_ names: [String], through client: TextClient, _ engineRoute: FaultyEngine) async {
        for name in names { client.observe("o\(name)", name) }
        for name in names { client.call("r\(name)", name, "add(_:)", [0]) }
        let all = { names.allSatisfy { client.answers("r\($0)").count == 1 } }
        engineRoute.set { $0.hangsReads = false }
        #expect(await eventually(all))
        for name in names {
            let answer = client.answers("r\(name)").first?.text ?? "none"
            #expect(answer.contains(#""result":11"#), "\(name): \(answer)")
        }
    }

    @Test(
        "changes made at an intermediate owner are present when the slot returns, even before its release here completed"
    )
    func returnedSlot() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let first = try Node("a", engine, through: engineRoute, settings: Self.settings)
        let second = try Node("b", engine, settings: Self.settings)
        try await Node.with([first]) {
            let tags = Array(0..<24)
            let names = tags.map { "tallies/{\($0)}x" }
            let client = try await first.textClient()
            await observe(names, through: client)
            await add(names, through: client)
            engineRoute.set { $0.hangsReads = true }
            for tag in tags { client.call("y\(tag)", "tallies/{\(tag)}y", "add(_:)", [1]) }
            #expect(await eventually { engineRoute.readCount >= tags.count })
            try await second.start()
            #expect(await eventually { names.count(where: second.owns) > 5 && second.member.ownsPlannedSlots })
            let moved = names.filter(second.owns)
            let other = try await second.textClient()
            for name in moved { other.call(name, name, "add(_:)", [10]) }
            #expect(await eventually { moved.allSatisfy { other.answers($0).count == 1 } })
            for name in moved { #expect(other.answers(name).first?.text.contains(#""result":11"#) == true) }
            await second.server.context.nodes?.drain(within: .seconds(300))
            #expect(await eventually { names.allSatisfy(first.owns) })
            let third = try await first.textClient()
            await readStates(moved, through: third, engineRoute)
            #expect(
                await eventually {
                    moved.allSatisfy { client.shown(of: "\($0.hashNumber)", before: "") >= 3 }
                })
            for client in [client, other, third] { client.abort() }
        }
        await second.stop()
    }

    @Test("a response follows the update of a stream whose actor was being loaded when its client's node lost the slot")
    func loadingHere() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [
            try Node("a", engine, through: engineRoute, settings: Self.settings),
            try Node("b", engine, settings: Self.settings),
        ]
        let third = try Node("c", engine, settings: Self.settings)
        try await Node.with(nodes) {
            let names = nodes[1].names(24)
            let client = try await nodes[0].textClient()
            await observe(names, through: client)
            engineRoute.set { $0.hangsReads = true }
            try await nodes[1].kill()
            #expect(await eventually { names.allSatisfy(nodes[0].owns) && engineRoute.readCount >= names.count })
            try await third.start()
            #expect(await eventually { names.count(where: third.owns) > 5 })
            await add(names.filter(third.owns), through: client)
            engineRoute.set { $0.hangsReads = false }
            client.abort()
        }
        await third.stop()
    }

    @Test("an actor is active on one node at a time, also while another actor of its slot is being activated")
    func singleInstance() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let first = try Node("a", engine, through: engineRoute, settings: Self.settings)
        let second = try Node("b", engine, settings: Self.settings)
        try await Node.with([first]) {
            let client = try await first.textClient()
            let names = (0..<24).map { "tallies/{\($0)}x" }
            for name in names { client.call(name, name, "add(_:)", [1]) }
            #expect(await eventually { names.allSatisfy { client.answers($0).count == 1 } })
            engineRoute.set { $0.hangsReads = true }
            for tag in 0..<24 { client.call("y\(tag)", "tallies/{\(tag)}y", "add(_:)", [1]) }
            #expect(await eventually { engineRoute.readCount >= 24 })
            try await second.start()
            #expect(await eventually { names.count(where: second.owns) > 5 })
            let moved = names.filter(second.owns)
            let other = try await second.textClient()
            for name in moved { other.call(name, name, "add(_:)", [10]) }
            #expect(await eventually { moved.allSatisfy { other.answers($0).count == 1 } })
            let directory = first.server.context.directory
            let living = {
                moved.filter { directory.record(ActorName($0)).map { !$0.actorInstance.isDeactivated } ?? false }
            }
            _ = await eventually { living().isEmpty }
            #expect(living().isEmpty, "\(living().count) of \(moved.count) are active on both nodes")
            engineRoute.set { $0.hangsReads = false }
            for client in [client, other] { client.abort() }
        }
        await second.stop()
    }

    @Test("a stopping node also ends the streams whose actors are being loaded on it")
    func movedWhileLoading() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [
            try Node("a", engine, through: engineRoute, settings: Self.settings),
            try Node("b", engine, settings: Self.settings),
        ]
        try await Node.with(nodes) {
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            await observe([name], through: client)
            engineRoute.set { $0.hangsReads = true }
            try await nodes[1].kill()
            #expect(await eventually { nodes[0].owns(name) && engineRoute.readCount > 0 })
            let stopping = Task { await nodes[0].server.shutdown(drain: .seconds(15)) }
            #expect(await eventually { client.messages.contains { $0.type == "goAway" } })
            #expect(
                await eventually { client.messages.contains { $0.type == "streamEnd" } },
                "\(client.texts.suffix(3))")
            engineRoute.set { $0.hangsReads = false }
            await stopping.value
            client.abort()
        }
    }
}

extension String {
    /// A number for the name, to be used as callID.
    var hashNumber: Int { utf8.reduce(7) { ($0 &* 31 &+ Int($1)) & 0xFFFF_FFFF } }
}

extension TextClient {
    /// The messages about an actor.
    func texts(about name: String) -> [String] {
        let all = messages
        let streams = Set(all.filter { $0.text.contains("\"\(name)\"") }.map(\.streamID).filter { !$0.isEmpty })
        return all.filter { $0.text.contains(name) || streams.contains($0.streamID) }.map(\.text)
    }

    /// The number of stream versions received before the response of a call.
    func shown(of observation: String, before callID: String) -> Int {
        let all = messages
        let streams = Set(all.filter { $0.type == "streamStart" && $0.callID == observation }.map(\.streamID))
        return all.prefix { $0.type != "response" || $0.callID != callID }
            .count { $0.type == "streamData" && streams.contains($0.streamID) }
    }
}

extension ForwardedStreams {
    /// Simulates a lost owner whose successor does not answer, over the channel `silentChannel`.
    mutating func suspend(_ stream: ForwardedStream) {
        if let source = stream.phase.source { _ = handle(.channelLost(source), of: stream.streamID) }
        #expect(handle(.ownerFound(over: Self.silentChannel), of: stream.streamID) != .none)
    }

    static var silentChannel: UInt64 { 1 << 32 }
}

extension Node {
    /// The number of streams that are being resumed for clients of this node.
    func resuming() async -> Int {
        var count = 0
        for shard in server.shards {
            count += await shard.reactor.perform {
                shard.connections.values.compactMap(\.callForwarder).flatMap { Array($0.streams.all) }
                    .count { $0.phase.isAwaited && $0.phase.source == nil && $0.phase != .resumingHere }
            }
        }
        return count
    }

    /// The number of responses delayed for clients of this node.
    func delayedResponseCount() async -> Int {
        var count = 0
        for shard in server.shards {
            count += await shard.reactor.perform { shard.responseBarriers.count }
        }
        return count
    }
}
