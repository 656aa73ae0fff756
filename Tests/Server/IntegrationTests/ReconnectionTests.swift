import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Clients and streams across a cut link and a restarted server.
@Suite(.timeLimit(.minutes(5))) struct ReconnectionTests {
    /// A server behind a link, and a client that reconnects at once.
    private struct Scene {
        let server: TrebuchetServer
        let link: FaultyLink
        let client: TrebuchetClient
        let ledger: OnceWrittenNumbers

        init(
            seed: UInt64 = 1, faults: FaultyLink.Faults = .none,
            _ change: (inout TrebuchetClient.Options) -> Void = { _ in }
        ) async throws {
            server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
            await server.expose(OnceWrittenNumbers(actorSystem: server.actorSystem), as: "ledger")
            link = try FaultyLink(to: try await server.start(), seed: seed, faults: faults)
            client = ReconnectionTests.client(to: link.address, change)
            ledger = try client.resolve(OnceWrittenNumbers.self, id: "ledger")
        }

        func end() async {
            await client.close()
            await link.close()
            await server.shutdown(drain: .zero)
        }
    }

    private static func client(
        to address: SocketAddress, _ change: (inout TrebuchetClient.Options) -> Void = { _ in }
    ) -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        options.reconnect.retriesFirstConnection = true
        change(&options)
        return TrebuchetClient(transport: .webSocket(host: address.host, port: address.port), options: options)
    }

    @Test(
        "a stream resumes after a cut: the same reader, no repeats, no older values, and the newest value",
        arguments: [FaultyLink.Cut.inOrder, .reset, .halfOpen(.seconds(30))])
    func resumption(cut: FaultyLink.Cut) async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        var states = await scene.ledger.observeEntries().makeAsyncIterator()
        #expect(await states.next() == [])
        try await scene.ledger.add(1)
        #expect(await states.next() == [1])
        await scene.link.disconnectAll(cut)
        // Without a connection, another caller changes the state.
        _ = try await scene.server.actorSystem.resolveLedger().add(2)
        #expect(await states.next() == [1, 2])
        // A reader that missed nothing gets nothing until the next change.
        await scene.link.disconnectAll(cut)
        // The call may be sent before the client has noticed the cut.
        try await scene.ledger.put(3)
        #expect(await states.next() == [1, 2, 3])
        #expect(scene.client.connectionState.currentValue == .connected)
        await scene.end()
    }

    @Test("a resumed stream with the newest value gets no repeat of it; another epoch, or none, gets it")
    func sequence() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(OnceWrittenNumbers(actorSystem: server.actorSystem), as: "ledger")
        let address = try await server.start()
        let first = try await RawPeer.connect(address)
        first.send(
            #"{"type":"invocation","payload":{"callID":"a","actorID":"ledger","targetIdentifier":"observeEntries"}}"#)
        let start = try #require(await first.nextText())
        let epoch = try #require(start.firstMatch(of: /"epoch":"([^"]+)"/)?.1)
        let data = try #require(await first.nextText())
        let sequence = try #require(data.firstMatch(of: /"sequenceNumber":(\d+)/)?.1)
        for (epoch, isSent) in [(String(epoch), false), ("other", true)] {
            let peer = try await RawPeer.connect(address)
            peer.send(
                #"{"type":"streamResume","payload":{"streamID":"s9","callID":"b","actorID":"ledger","#
                    + #""targetIdentifier":"observeEntries","epoch":"\#(epoch)","lastSequence":\#(sequence)}}"#)
            #expect(await peer.nextText()?.contains(#""type":"streamStart""#) == true)
            peer.send(
                #"{"type":"invocation","payload":{"callID":"c","actorID":"ledger","targetIdentifier":"count()","arguments":[]}}"#
            )
            let next = try #require(await peer.nextText())
            #expect(next.contains("streamData") == isSent, "\(next)")
            peer.close()
        }
        first.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a stream started after a reconnect never gets the name of a resumed one")
    func streamNames() async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        var first = await scene.ledger.observeEntries().makeAsyncIterator()
        #expect(await first.next() == [])
        await scene.link.disconnectAll()
        var second = await scene.ledger.observeEntries().makeAsyncIterator()
        #expect(await second.next() == [])
        try await scene.ledger.add(1)
        #expect(await first.next() == [1])
        #expect(await second.next() == [1])
        await scene.end()
    }

    @Test("a resumed stream and a new one behind it, in one write, have different names")
    func streamNamesAtOnce() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        await server.expose(OnceWrittenNumbers(actorSystem: server.actorSystem), as: "ledger")
        let address = try await server.start()
        // Some of them on another reactor than the actor, where the start of a stream takes a while.
        for _ in 0..<8 {
            let peer = try await RawPeer.connect(address)
            await peer.together {
                peer.send(
                    #"{"type":"streamResume","payload":{"streamID":"s1","callID":"a","actorID":"ledger","#
                        + #""targetIdentifier":"observeEntries","epoch":"","lastSequence":0}}"#)
                peer.invoke("b", "ledger", "observeEntries")
            }
            var names: [String: String] = [:]
            while names.count < 2 {
                let text = try #require(await peer.nextText())
                guard
                    let match = text.firstMatch(of: /"streamStart","payload":\{"streamID":"([^"]+)","callID":"([^"]+)"/)
                else { continue }
                names[String(match.2)] = String(match.1)
            }
            #expect(names["a"] == "s1")
            #expect(names["b"] != "s1")
            peer.close()
        }
        await server.shutdown(drain: .zero)
    }

    @Test(
        "streams with equal names from different connections resume side by side, and beside a new one with that name"
    )
    func sameNames() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let ledgers = [
            OnceWrittenNumbers(actorSystem: server.actorSystem), OnceWrittenNumbers(actorSystem: server.actorSystem),
        ]
        for (number, ledger) in ledgers.enumerated() { await server.expose(ledger, as: "ledger-\(number)") }
        let address = try await server.start()
        // Some of them on other reactors than the actors.
        for _ in 1...8 {
            let peer = try await RawPeer.connect(address)
            await peer.together {
                peer.invoke("new", "ledger-0", "observeEntries")
                for number in 0...1 {
                    peer.send(
                        #"{"type":"streamResume","payload":{"streamID":"s1","callID":"\#(number)","actorID":"ledger-\#(number)","#
                            + #""targetIdentifier":"observeEntries","epoch":"","lastSequence":0}}"#)
                }
            }
            // Each has a unique name and one value.
            var names: [String: String] = [:]
            var values: Set<String> = []
            while values.count < 3 {
                let text = try #require(await peer.nextText())
                let name = try String(#require(text.firstMatch(of: /"streamID":"([^"]+)"/)).1)
                if let start = text.firstMatch(of: /"streamStart",.*"callID":"([^"]+)"/) {
                    names[name] = String(start.1)
                } else {
                    #expect(text.contains(#""streamData""#))
                    values.insert(try #require(names[name]))
                }
            }
            #expect(Set(names.values) == ["new", "0", "1"])
            peer.close()
        }
        await server.shutdown(drain: .zero)
    }

    @Test("calls made without a connection wait for it, or fail at once, by option")
    func waitingCalls() async throws {
        for waits in [true, false] {
            let scene = try await Scene { $0.whileDisconnected = waits ? .wait : .fail }
            try await scene.client.connect()
            let call = try await scene.link.refuseConnections {
                await scene.link.disconnectAll()
                for await state in scene.client.connectionState.stream where state != .connected { break }
                let call = Task { try await scene.ledger.add(5) }
                if !waits { _ = await call.result }
                return call
            }
            if waits {
                #expect(try await call.value == 1)
            } else {
                let error = await #expect(throws: TrebuchetError.self) { try await call.value }
                #expect(error?.code == .unavailable)
            }
            await scene.end()
        }
    }

    @Test("a call that waits for a connection in vain ends at its deadline")
    func deadline() async throws {
        let scene = try await Scene { $0.callTimeout = .milliseconds(100) }
        try await scene.client.connect()
        try await scene.link.refuseConnections {
            await scene.link.disconnectAll()
            for await state in scene.client.connectionState.stream where state != .connected { break }
            let error = await #expect(throws: TrebuchetError.self) { try await scene.ledger.count() }
            #expect(error?.code == .timeout)
            #expect(error?.message.contains("no connection") == true)
        }
        await scene.end()
    }

    @Test("a sent call without a response ends as unknownOutcome")
    func unknownOutcome() async throws {
        let scene = try await Scene()
        let journal = Journal()
        await scene.server.expose(SizedStateActor(journal: journal, actorSystem: scene.server.actorSystem), as: "board")
        try await scene.client.connect()
        let board = try scene.client.resolve(SizedStateActor.self, id: "board")
        let call = Task { try await board.hold("a") }
        await journal.wait(for: "a began")
        await scene.link.disconnectAll()
        let error = await #expect(throws: TrebuchetError.self) { try await call.value }
        #expect(error?.code == .unknownOutcome)
        await scene.end()
    }

    @Test("after close() there is no further attempt, and connect() reports it")
    func closed() async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        await scene.client.close()
        #expect(scene.client.connectionState.currentValue == .closed)
        let accepted = scene.link.counters.accepted
        let error = await #expect(throws: TransportError.self) { try await scene.client.connect() }
        #expect(error?.code == .closed)
        #expect(scene.link.counters.accepted == accepted)
        await scene.end()
    }

    @Test("a failed first connection is an error, unless the policy retries it")
    func firstConnection() async throws {
        let scene = try await Scene { $0.reconnect.retriesFirstConnection = false }
        try await scene.link.refuseConnections {
            let error = await #expect(throws: TransportError.self) { try await scene.client.connect() }
            #expect(error?.code == .refused)
            guard case .disconnected(.some) = scene.client.connectionState.currentValue else {
                Issue.record("the client is \(scene.client.connectionState.currentValue)")
                return
            }
        }
        try await scene.client.connect()
        await scene.end()
    }

    @Test("clients of a killed and restarted server reconnect automatically, with a new epoch and a whole value")
    func killedServer() async throws {
        let port = Int.random(in: 20_000..<30_000)
        let first = try ChildProcess(ServeProcess.tool, ["serve", "--examples", "--port", "\(port)"])
        try #require(await first.nextLine()?.contains("\(port)") == true)
        let client = Self.client(to: try #require(SocketAddress(literal: "127.0.0.1", port: port)))
        try await client.connect()
        var states = client.observe(actor: "counter", stream: "observeState").makeAsyncIterator()
        #expect(try await states.next(isolation: nil) == Array(#"{"count":0}"#.utf8))
        _ = try await client.call(actor: "counter", target: "increment()", arguments: [])
        #expect(try await states.next(isolation: nil) == Array(#"{"count":1}"#.utf8))
        first.signal(9)
        _ = await first.finish()
        let second = try ChildProcess(ServeProcess.tool, ["serve", "--examples", "--port", "\(port)"])
        try #require(await second.nextLine()?.contains("\(port)") == true)
        #expect(try await states.next(isolation: nil) == Array(#"{"count":0}"#.utf8), "a new server, a new epoch")
        _ = try await client.call(actor: "counter", target: "increment()", arguments: [])
        #expect(try await states.next(isolation: nil) == Array(#"{"count":1}"#.utf8))
        await client.close()
        second.signal(15)
        _ = await second.finish()
    }

    @Test("streams of a drained server continue at its replacement")
    func draining() async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        var states = await scene.ledger.observeEntries().makeAsyncIterator()
        try await scene.ledger.add(7)
        while let state = await states.next(), state != [7] {}
        let port = scene.server.address?.port ?? 0
        await scene.server.shutdown(drain: .milliseconds(50))
        let second = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port))
        await second.expose(OnceWrittenNumbers(actorSystem: second.actorSystem), as: "ledger")
        try await second.start()
        #expect(await states.next() == [])
        try await scene.ledger.add(8)
        #expect(await states.next() == [8])
        await scene.client.close()
        await scene.link.close()
        await second.shutdown(drain: .zero)
    }
}
