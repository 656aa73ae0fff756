import Testing
import Trebuchet
import TrebuchetTesting

/// States that are sent as differences (RFC 6902).
@Suite(.timeLimit(.minutes(5))) struct DeltaTests {
    private static let observe =
        #"{"type":"invocation","payload":{"callID":"o","actorID":"ledger","targetIdentifier":"observeEntries"}}"#

    /// Runs `body` with a server whose ledger has a thousand numbers, and a subscriber.
    private func withLedger(
        _ body: (RawPeer, OnceWrittenNumbers, TrebuchetServer, _ epoch: Substring, _ sequence: Int) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let ledger = OnceWrittenNumbers(actorSystem: server.actorSystem)
        try await ledger.fill(1_000)
        await server.expose(ledger, as: "ledger")
        let peer = try await RawPeer.connect(server.start())
        peer.send(Self.observe)
        let start = try #require(await peer.nextText())
        let epoch = try #require(start.firstMatch(of: /"epoch":"([^"]+)"/)?.1)
        let first = try #require(await peer.nextText())
        #expect(first.contains(#""data":[0,1,2,"#))
        let sequence = try #require(first.firstMatch(of: /"sequenceNumber":(\d+)/).flatMap { Int($0.1) })
        try await body(peer, ledger, server, epoch, sequence)
        peer.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a change of a large state is sent as the difference from the version before; a small state is sent whole")
    func patch() async throws {
        try await withLedger { peer, ledger, _, _, sequence in
            try await ledger.add(7)
            let next = try #require(await peer.nextText())
            #expect(next.contains(#""sequenceNumber":\#(sequence + 1)"#))
            #expect(next.contains(#""base":\#(sequence),"patch":[{"op":"add","path":"/-","value":7}]"#), "\(next)")
            #expect(!next.contains(#""data""#))
            try await ledger.clear()
            #expect(try #require(await peer.nextText()).contains(#""data":[]"#), "a difference would be longer")
            try await ledger.add(1)
            #expect(try #require(await peer.nextText()).contains(#""data":[1]"#))
        }
    }

    @Test("a returning subscriber gets the missing differences while they are few, else the whole value")
    func history() async throws {
        try await withLedger { peer, ledger, server, epoch, sequence in
            for number in 0..<3 {
                try await ledger.add(number)
                _ = await peer.nextText()
            }
            func resumed(from last: Int, epoch: some StringProtocol) async throws -> [String] {
                let second = try await RawPeer.connect(#require(server.address))
                second.send(
                    #"{"type":"streamResume","payload":{"streamID":"s7","callID":"r","actorID":"ledger","#
                        + #""targetIdentifier":"observeEntries","epoch":"\#(epoch)","lastSequence":\#(last)}}"#)
                #expect(try #require(await second.nextText()).contains("streamStart"))
                second.invoke("c", "ledger", "count()")
                var messages: [String] = []
                while let text = await second.nextText(), !text.contains("response") { messages.append(text) }
                second.close()
                return messages
            }
            let missed = try await resumed(from: sequence + 1, epoch: epoch)
            #expect(missed.count == 2)
            #expect(missed.first?.contains(#""base":\#(sequence + 1),"patch""#) == true)
            #expect(missed.last?.contains(#""base":\#(sequence + 2),"patch""#) == true)
            let all = try await resumed(from: sequence + 1, epoch: "another")
            #expect(all.count == 1)
            #expect(all.first?.contains(#""data":[0,1,2,"#) == true)
            for number in 0..<100 {
                try await ledger.add(number)
                _ = await peer.nextText()
            }
            let late = try await resumed(from: sequence + 1, epoch: epoch)
            #expect(late.count == 1)
            #expect(late.first?.contains(#""data":[0,1,2,"#) == true, "the version is no longer available")
        }
    }

    @Test("a client assembles the value, and its reader never sees a difference", arguments: TestLink.allCases)
    func client(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            let ledger = OnceWrittenNumbers(actorSystem: server.actorSystem)
            try await ledger.fill(200)
            await server.expose(ledger, as: "ledger")
        } body: { client, _ in
            let ledger = try client.resolve(OnceWrittenNumbers.self, id: "ledger")
            var states = await ledger.observeEntries().makeAsyncIterator()
            var expected = Array(0..<200)
            #expect(await states.next() == expected)
            for number in 0..<50 {
                try await ledger.replace(number, with: -number)
                expected[number] = -number
                #expect(await states.next() == expected)
            }
        }
    }
}
