import Testing
import Trebuchet
import TrebuchetTesting

@Trebuchet
private distributed actor Steps {
    @StreamedState var count: Int = 0
    @StreamedEvents var made: Int

    init(actorSystem: TrebuchetActorSystem) { self.actorSystem = actorSystem }

    distributed func make() -> Int {
        count += 1
        $made.send(count)
        return count
    }
}

/// A value that takes 2 ms to encode.
private struct SlowValue: Codable, Equatable {
    var number = 0

    init() {}
    init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(Int.self) }

    func encode(to encoder: any Encoder) throws {
        let start = ContinuousClock.now
        while ContinuousClock.now - start < .milliseconds(2) {}
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}

@Trebuchet
private distributed actor SlowValues {
    @StreamedState var first = SlowValue()
    @StreamedState var second = SlowValue()
    @StreamedState var third = SlowValue()

    distributed func change() -> Int {
        first.number += 1
        second.number += 1
        third.number += 1
        return first.number
    }
}

/// A value that is evaluated for filters on another thread than the reactor of its actor.
private struct LargeValue: Codable {
    var number = 0
    var text = String(repeating: "x", count: 100_000)
}

@Trebuchet
private distributed actor LargeValues {
    @StreamedState var value = LargeValue()

    distributed func change() -> Int {
        value.number += 1
        return value.number
    }

    distributed func changeLater() async -> Int {
        await Task.yield()
        return change()
    }
}

/// A caller receives the changes of its call before the response: also in streams that are just starting, on any reactors of actor and
/// connection.
@Suite(.timeLimit(.minutes(5))) struct ReadOwnUpdateTests {
    private func withSteps(_ body: (TrebuchetServer) async throws -> Void) async throws {
        try await withTestServer(link: .webSocket, reactors: 2) { server in
            await server.expose(Steps(actorSystem: server.actorSystem), as: "steps")
        } body: { _, server in
            try await body(server)
        }
    }

    /// All messages up to the response of the call `c`, which is the last.
    private func messages(_ peer: RawPeer) async throws -> [String] {
        var messages: [String] = []
        repeat { messages.append(try #require(await peer.nextText())) } while !messages.last!.contains(#""callID":"c""#)
        return messages
    }

    @Test(
        "a state requested with the call shows its changes before the response",
        arguments: ["", #","filter":{"distinct":true}"#])
    func begun(filter: String) async throws {
        try await withSteps { server in
            for round in 1...100 {
                let peer = try await RawPeer.connect(#require(server.address))
                peer.send(
                    #"{"type":"invocation","payload":{"callID":"o","actorID":"steps","targetIdentifier":"observeCount"\#(filter)}}"#
                )
                peer.invoke("c", "steps", "make()")
                let messages = try await messages(peer)
                #expect(messages.last!.contains(#""result":\#(round)"#))
                #expect(messages.dropLast().contains { $0.contains(#""data":\#(round)}"#) }, "\(messages)")
                peer.close()
            }
        }
    }

    @Test("states that are sent in several turns show the changes of a call before its response", arguments: [0, 1])
    func severalTurns(reactor: UInt64) async throws {
        try await withTestServer(link: .webSocket, reactors: 2) { server in
            await server.expose(SlowValues(actorSystem: server.actorSystem), as: "slow")
        } body: { _, server in
            var peer = try await RawPeer.connect(#require(server.address))
            while peer.reactorIndex != reactor {
                peer.close()
                peer = try await RawPeer.connect(#require(server.address))
            }
            for name in ["First", "Second", "Third"] {
                peer.send(
                    #"{"type":"invocation","payload":{"callID":"\#(name)","actorID":"slow","targetIdentifier":"observe\#(name)"}}"#
                )
            }
            for round in 1...20 {
                peer.invoke("c", "slow", "change()")
                let messages = try await messages(peer)
                #expect(messages.last!.contains(#""result":\#(round)"#))
                #expect(messages.count { $0.contains(#""data":\#(round)}"#) } == 3, "\(messages)")
            }
            peer.close()
        }
    }

    @Test(
        "a part of a large state shows the changes of a call before its response", arguments: [0, 1],
        ["change()", "changeLater()"])
    func largeFilter(reactor: UInt64, method: String) async throws {
        try await withTestServer(link: .webSocket, reactors: 2) { server in
            await server.expose(LargeValues(actorSystem: server.actorSystem), as: "large")
        } body: { _, server in
            var peer = try await RawPeer.connect(#require(server.address))
            while peer.reactorIndex != reactor {
                peer.close()
                peer = try await RawPeer.connect(#require(server.address))
            }
            peer.send(
                #"{"type":"invocation","payload":{"callID":"o","actorID":"large","targetIdentifier":"observeValue","filter":{"path":"/number"}}}"#
            )
            for round in 1...20 {
                peer.invoke("c", "large", method)
                let messages = try await messages(peer)
                #expect(messages.last!.contains(#""result":\#(round)"#))
                #expect(messages.dropLast().contains { $0.contains(#""data":\#(round)}"#) }, "\(messages)")
            }
            peer.close()
        }
    }

    @Test("a state resumed with many calls shows their changes before the responses")
    func resumed() async throws {
        try await withSteps { server in
            for round in 1...50 {
                let peer = try await RawPeer.connect(#require(server.address))
                peer.send(
                    #"{"type":"streamResume","payload":{"streamID":"s\#(round)","actorID":"steps","targetIdentifier":"observeCount","epoch":"another","lastSequence":1}}"#
                )
                for call in ["a", "b", "c"] { peer.invoke(call, "steps", "make()") }
                let messages = try await messages(peer)
                let answers = messages.filter { $0.contains(#""response""#) }
                #expect(answers.count == 3)
                let shown = messages.firstIndex { $0.contains("streamData") }
                #expect(try #require(shown) < #require(messages.firstIndex { $0.contains(#""response""#) }))
                #expect(messages.dropLast().last { $0.contains("streamData") }?.contains("\(round * 3)") == true)
                peer.close()
            }
        }
    }

    @Test("an event of a call arrives before the response when its stream was requested before")
    func events() async throws {
        try await withSteps { server in
            for round in 1...50 {
                let peer = try await RawPeer.connect(#require(server.address))
                peer.send(
                    #"{"type":"invocation","payload":{"callID":"o","actorID":"steps","targetIdentifier":"observeMade"}}"#
                )
                peer.invoke("c", "steps", "make()")
                let messages = try await messages(peer)
                #expect(messages.dropLast().contains { $0.contains(#""data":\#(round)}"#) }, "\(messages)")
                peer.close()
            }
        }
    }
}
