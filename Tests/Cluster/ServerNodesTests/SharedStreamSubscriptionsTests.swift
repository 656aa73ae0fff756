import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Streams that a node receives once for all of its clients. Serialized: each node of a test causes load while it runs.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SharedStreamSubscriptionsTests {
    private static let streams = ["observeSteps", "observeCells", "observeMarks"]

    /// Changes the state of a stream.
    private func change(_ stream: String, of name: String, by client: TextClient, _ number: Int) async {
        let (target, arguments) =
            switch stream {
            case "observeSteps": ("step()", "[]")
            case "observeCells": ("set(_:_:)", "[\(number % 100),\(number)]")
            default: ("mark(_:)", "[\(number)]")
            }
        client.call(number, name, target, arguments)
        #expect(await client.answer(number) != nil)
    }

    /// True if the versions increase.
    private func rises(_ messages: [TextClient.Message]) -> Bool {
        zip(messages, messages.dropFirst()).allSatisfy { $0.sequence < $1.sequence }
    }

    @Test("each version is sent to a node once, and its clients get all versions in order", arguments: streams)
    func once(stream: String) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: engineRoute) { nodes in
            let name = nodes[1].names("boards")[0]
            let first = stream == "observeMarks" ? 0 : 1
            var clients: [TextClient] = []
            for _ in 0..<50 {
                let client = try await nodes[0].textClient()
                client.observe("1", name, stream)
                clients.append(client)
            }
            for client in clients {
                #expect(await eventually { client.starts.count == 1 && client.versions.count == first })
            }
            #expect(await eventually { await nodes[1].server.subscriberCount(of: name, stream) == 1 })
            engineRoute.set { $0.keepsMessages = true }
            // A client of the owner: its responses are no messages between nodes.
            let caller = try await nodes[1].textClient()
            let count = 20
            for number in 1...count {
                await change(stream, of: name, by: caller, number)
                for client in clients { #expect(await eventually { client.versions.count == first + number }) }
            }
            for client in clients {
                #expect(rises(client.versions))
                #expect(client.versions.map(\.sequence) == clients[0].versions.map(\.sequence))
            }
            let messages = engineRoute.messages(to: nodes[0].member.node)
            let frames = messages.compactMap { NodeMessage($0) }.flatMap(\.frames).filter { $0.kind == .toClient }
            #expect(frames.count { SharedStreamMessage($0.payload)?.kind == .version } == count)
            #expect(frames.count == count)
            #expect(messages.reduce(0) { $0 + $1.count } < count * 400)
            for client in clients { client.abort() }
            caller.abort()
            // The stream ends with its last subscriber.
            #expect(await eventually { await nodes[1].server.subscriberCount(of: name, stream) == 0 })
            #expect(await eventually { nodes[0].server.context.nodes?.shared.count == 0 })
        }
    }

    @Test("the start of a stream precedes its versions while other streams of the client are behind")
    func startFirst() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let names = nodes[1].names(6)
            // Responses are deferred whenever two streams have changed.
            for shard in nodes[0].server.shards { await shard.reactor.perform { shard.catchUpTime = 0 } }
            let client = try await nodes[0].textClient()
            for (index, name) in names.enumerated() { client.observe("o\(index)", name) }
            #expect(await eventually { client.starts.count == names.count })
            let caller = try await nodes[1].textClient()
            for number in 1...60 {
                for (index, name) in names.enumerated() { caller.call(number * 10 + index, name, "add(_:)", "[1]") }
                client.call(number, names[number % 6], "observeCount", "[]", more: #","filter":{"distinct":true}"#)
            }
            #expect(await eventually { client.starts.count == names.count + 60 }, "\(client.messages.map(\.error))")
            var started: Set<String> = []
            for message in client.messages {
                if message.type == "streamStart" { started.insert(message.streamID) }
                if message.type == "streamData" {
                    #expect(started.contains(message.streamID), "\(message.text) has no start")
                }
            }
            client.abort()
            caller.abort()
        }
    }

    @Test("a later subscriber gets the whole value, computed by its node")
    func late() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names("boards")[0]
            let owner = nodes[1].server
            let board = try await nodes[0].client().resolve(LargeStateActor.self, id: name)
            var (cells, items) = (
                await board.observeCells().makeAsyncIterator(), await board.observeItems().makeAsyncIterator()
            )
            #expect(await cells.next() == LargeStateActor.Cells())
            #expect(await items.next()?.count == 0)
            var expected = LargeStateActor.Cells()
            for number in 0..<100 {
                expected.numbers[number] = number
                _ = try await board.set(number, number)
                _ = try await board.put(number % 40, "title \(number)")
            }
            let encodings = (
                await owner.encodeCount(of: name, "observeCells"), await owner.encodeCount(of: name, "observeItems")
            )
            for _ in 0..<4 {
                let later = try await nodes[0].client().resolve(LargeStateActor.self, id: name)
                var found = await later.observeCells().makeAsyncIterator()
                #expect(await found.next() == expected)
                var list = await later.observeItems().makeAsyncIterator()
                let items = await list.next()
                #expect(items?.map(\.id) == Array(0..<40))
                #expect(items?.map(\.title) == (0..<40).map { "title \($0 < 20 ? $0 + 80 : $0 + 40)" })
            }
            #expect(await owner.encodeCount(of: name, "observeCells") == encodings.0)
            #expect(await owner.encodeCount(of: name, "observeItems") == encodings.1)
            #expect(await owner.subscriberCount(of: name, "observeCells") == 1)
        }
    }

    @Test("a reconnected client gets the missing versions from its node", arguments: ["observeSteps", "observeMarks"])
    func cut(stream: String) async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names("boards")[0]
            let first = stream == "observeMarks" ? 0 : 1
            let (other, caller) = (try await nodes[0].textClient(), try await nodes[1].textClient())
            let before = try await nodes[0].textClient()
            for client in [other, before] {
                client.observe("1", name, stream)
                #expect(await eventually { client.starts.count == 1 && client.versions.count == first })
            }
            for number in 1...3 { await change(stream, of: name, by: caller, number) }
            #expect(await eventually { before.versions.count == first + 3 })
            before.abort()
            for number in 4...6 { await change(stream, of: name, by: caller, number) }
            #expect(await eventually { other.versions.count == first + 6 })
            let after = try await nodes[0].textClient()
            let (start, last) = (try #require(before.starts.first), try #require(before.versions.last))
            after.resume(start, "r", name, behind: last.sequence, stream)
            #expect(await eventually { after.versions.count == 3 })
            #expect(after.versions.map(\.sequence) == (1...3).map { last.sequence + $0 })
            #expect(await nodes[1].server.subscriberCount(of: name, stream) == 1)
            for client in [other, caller, after] { client.abort() }
        }
    }

    @Test("versions that a node has not retained are delivered by the owner")
    func missing() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names("boards")[0]
            let caller = try await nodes[1].textClient()
            let before = try await nodes[1].textClient()
            before.observe("1", name, "observeSteps")
            #expect(await eventually { before.versions.count == 1 })
            for number in 1...3 { await change("observeSteps", of: name, by: caller, number) }
            let other = try await nodes[0].textClient()
            other.observe("1", name, "observeSteps")
            #expect(await eventually { other.versions.count == 1 })
            // Seen at another node, and older than all versions of this node.
            let after = try await nodes[0].textClient()
            let start = try #require(before.starts.first)
            after.resume(start, "r", name, behind: try #require(before.versions.first).sequence, "observeSteps")
            #expect(await eventually { after.versions.count == 3 })
            #expect(after.versions.map(\.sequence) == before.versions.dropFirst().map(\.sequence))
            #expect(after.versions.allSatisfy { $0.streamID == after.starts.last?.streamID })
            for client in [before, caller, other, after] { client.abort() }
        }
    }

    @Test(
        "a hundred subscribers notice nothing when the owner dies or drains, and the next owner sends each version once",
        arguments: [false, true])
    func moved(inOrder: Bool) async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let names = nodes[1].names(4)
            let caller = try await nodes[0].textClient()
            var clients: [(client: TextClient, name: String)] = []
            for name in names {
                caller.call("first \(name)", name, "add(_:)", [1])
                #expect(await eventually { caller.answers("first \(name)").count == 1 })
                for _ in 0..<25 {
                    let client = try await nodes[0].textClient()
                    client.observe("1", name)
                    clients.append((client, name))
                }
            }
            for (client, _) in clients { #expect(await eventually { client.versions.count == 1 }) }
            for name in names {
                #expect(await nodes[1].server.subscriberCount(of: name, "observeCount") == 1)
                for number in 2...6 { caller.call("\(number) \(name)", name, "add(_:)", [1]) }
            }
            for name in names { #expect(await eventually { caller.answers("6 \(name)").count == 1 }) }
            if inOrder { await nodes[1].server.shutdown() } else { try await nodes[1].kill() }
            for name in names {
                for number in 7...11 { caller.call("\(number) \(name)", name, "add(_:)", [1]) }
            }
            for name in names { #expect(await eventually { caller.answers("11 \(name)").count == 1 }) }
            for (client, _) in clients {
                #expect(await eventually { client.versions.count == 11 })
                #expect(client.versions.map(\.sequence) == (0..<11).map { client.versions[0].sequence + $0 })
                #expect(client.messages.allSatisfy { $0.error.isEmpty })
            }
            for name in names where nodes[2].owns(name) {
                #expect(await nodes[2].server.subscriberCount(of: name, "observeCount") == 1)
            }
            for (client, _) in clients { client.abort() }
            caller.abort()
        }
    }

    @Test("a slow subscriber does not delay others, and gets the latest version when it reads again")
    func slow() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names("boards")[0]
            let (slow, fast) = (try await nodes[0].textClient(), try await nodes[0].textClient())
            for client in [slow, fast] {
                client.observe("1", name, "observeCells")
                #expect(await eventually { client.versions.count == 1 })
            }
            await slow.pause()
            let caller = try await nodes[1].textClient()
            let count = 40
            for number in 1...count {
                // Each version is a snapshot, as it shares little with the previous one.
                caller.call(number, name, "fill(_:)", "[\(400_000 + number * 1_000)]")
                #expect(await caller.answer(number) != nil)
                #expect(await eventually { fast.versions.count == number + 1 })
            }
            #expect(await nodes[1].server.subscriberCount(of: name, "observeCells") == 1)
            await slow.resumeReading()
            let last = try #require(fast.versions.last)
            #expect(await eventually { slow.versions.last?.sequence == last.sequence })
            #expect(slow.versions.count < count)
            #expect(rises(slow.versions))
            for client in [slow, fast, caller] { client.abort() }
        }
    }

    @Test("an unauthorized client observes nothing, even with other subscribers at its node: the owner authorizes each")
    func forbidden() async throws {
        let isEve = Flag()
        let access = AccessPolicy(authenticate: { _ in Principal(id: isEve.isSet ? "eve" : "ada") })
        let rule: NodeRule = { node, caller, target in
            node != "b" || caller?.principal?.id != "eve" || !target.hasPrefix("observe")
        }
        try await withNodes(["a", "b"], access: access, rule: rule) { nodes in
            let name = nodes[1].names("boards")[0]
            let ada = try await nodes[0].textClient()
            isEve.set()
            let eve = try await nodes[0].textClient()
            ada.observe("1", name, "observeSteps")
            #expect(await eventually { ada.versions.count == 1 })
            eve.observe("1", name, "observeSteps")
            #expect(await eventually { eve.answers("1").count == 1 })
            #expect(eve.answers("1").first?.error == "unauthorized")
            let start = try #require(ada.starts.first)
            eve.resume(start, "2", name, behind: 1, "observeSteps")
            #expect(await eventually { eve.answers("2").first?.error == "unauthorized" })
            eve.call(3, name, "step()", "[]")
            #expect(await eve.answer(3)?.contains(#""result":1"#) == true)
            #expect(await eventually { ada.versions.count == 2 })
            #expect(eve.versions.isEmpty && eve.starts.isEmpty)
            ada.abort()
            eve.abort()
        }
    }

    @Test("shared streams count towards their clients' quotas")
    func limits() async throws {
        var limits = ServerLimits()
        limits.streams.perConnection = 3
        try await withNodes(["a", "b"], limits: limits) { nodes in
            let names = nodes[1].names("boards", 4)
            let client = try await nodes[0].textClient()
            for (number, name) in names.prefix(3).enumerated() {
                client.observe("\(number)", name, "observeSteps")
                #expect(await eventually { client.versions.count == number + 1 })
            }
            client.observe("3", names[3], "observeSteps")
            #expect(await eventually { client.answers("3").first?.error == "rateLimited" })
            client.unsubscribe(try #require(client.starts.first))
            client.observe("4", names[3], "observeSteps")
            #expect(await eventually { client.versions.count == 4 })
            client.abort()
        }
    }

    @Test(
        "a response always follows the updates of its call, also while the stream starts, on either path",
        arguments: [false, true])
    func answers(directly: Bool) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: engineRoute, areReached: directly) { nodes in
            if directly {
                // The first calls go through the coordination store.
                let tally = try await nodes[0].client().resolve(Tally.self, id: nodes[1].names(1)[0])
                #expect(
                    await eventually {
                        let before = engineRoute.messageCount
                        _ = try? await tally.add(0)
                        return engineRoute.messageCount == before
                    })
            }
            let before = engineRoute.messageCount
            // Actors of both reactors, and clients on both.
            let names = nodes[1].names("boards", 6) + nodes[1].names(6)
            let clients = [
                try await nodes[0].textClient(), try await nodes[0].textClient(), try await nodes[0].textClient(),
            ]
            for (number, name) in names.enumerated() {
                let (target, arguments) = name.hasPrefix("boards") ? ("step()", [Int]()) : ("add(_:)", [1])
                let client = clients[number % clients.count]
                client.observe("s\(name)", name, name.hasPrefix("boards") ? "observeSteps" : "observeCount")
                for call in 1...20 { client.call("\(call) \(name)", name, target, arguments) }
            }
            for (number, name) in names.enumerated() {
                let client = clients[number % clients.count]
                #expect(await eventually { client.answers("20 \(name)").count == 1 })
                // One call at a time: only its update and its response are in transit.
                let (target, arguments) = name.hasPrefix("boards") ? ("step()", [Int]()) : ("add(_:)", [1])
                for call in 21...30 {
                    client.call("\(call) \(name)", name, target, arguments)
                    #expect(await eventually { client.answers("\(call) \(name)").count == 1 })
                }
                let messages = client.messages
                let streamID = messages.first { $0.type == "streamStart" && $0.callID == "s\(name)" }?.streamID
                var shown = 0
                for message in messages {
                    if message.type == "streamData", message.streamID == streamID {
                        shown = max(shown, value(of: message, "data"))
                    } else if message.type == "response", message.callID.hasSuffix(" \(name)") {
                        #expect(shown >= value(of: message, "result"), "\(name) \(message.text)")
                    }
                }
                #expect(shown == 30, "\(messages.filter { $0.type != "response" }.map(\.text))")
            }
            #expect((engineRoute.messageCount == before) == directly)
            for client in clients { client.abort() }
        }
    }

    /// The number in a member of a message.
    private func value(of message: TextClient.Message, _ member: String) -> Int {
        let rest = message.text.split(separator: "\"\(member)\":", maxSplits: 1).last ?? ""
        return Int(rest.prefix { $0.isNumber }) ?? 0
    }
}
