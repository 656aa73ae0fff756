import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Publishes its arguments as events and as versions of a state.
@Trebuchet
private distributed actor Ticker {
    struct Tick: Codable, Sendable, Equatable {
        var number: Int
        var padding = ""
    }

    @StreamedEvents(buffer: 64) var ticks: Tick
    @StreamedState(delivery: .every(buffer: 64)) var count: Int = 0
    @StreamedState(delivery: .every(buffer: 64)) var page: [String] = []

    /// Publishes `times` numbers in one call.
    distributed func tick(_ times: Int, padding: Int = 0) {
        for _ in 0..<times {
            count += 1
            $ticks.send(Tick(number: count, padding: String(repeating: "x", count: padding)))
        }
    }
    distributed func write(_ line: String) { page.append(line) }
}

/// Its values cannot always be encoded.
@Trebuchet
private distributed actor Thermometer {
    @StreamedEvents var readings: Double

    distributed func read(_ value: Double) { $readings.send(value == 0 ? .nan : value) }
}

@Trebuchet(executor: .concurrent)
private distributed actor PoolTicker {
    @StreamedEvents var ticks: Int

    distributed func tick(_ times: Int) { for number in 1...times { $ticks.send(number) } }
}

/// Streams without conflation: events, and states whose delivery is `.every`.
@Suite(.timeLimit(.minutes(5))) struct OrderedStreamTests {
    private func withTicker(
        _ link: TestLink, reactors: Int = 2, limits: ServerLimits = ServerLimits(),
        _ body: (Ticker, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, reactors: reactors, limits: limits) { server in
            await server.expose(Ticker(actorSystem: server.actorSystem), as: "ticker")
        } body: { client, server in
            try await body(client.resolve(Ticker.self, id: "ticker"), client, server)
        }
    }

    /// Waits until the server has started `count` streams.
    private func haveStarted(_ server: TrebuchetServer, _ count: Int, _ stream: String = "observeTicks") async {
        #expect(await eventually { await server.subscriberCount(of: "ticker", stream) == count })
    }

    @Test("every subscriber gets every event in order, also many events of one call", arguments: TestLink.allCases)
    func events(link: TestLink) async throws {
        try await withTicker(link) { ticker, client, server in
            var readers: [EventStream<Ticker.Tick>.Iterator] = []
            for _ in 0..<4 { readers.append(await ticker.observeTicks().makeAsyncIterator()) }
            await haveStarted(server, 4)
            for _ in 0..<20 { try await ticker.tick(50) }
            for index in readers.indices {
                for number in 1...50 { #expect(try await readers[index].next()?.number == number) }
            }
        }
    }

    @Test("a new subscriber gets the events sent after its subscription", arguments: TestLink.allCases)
    func late(link: TestLink) async throws {
        try await withTicker(link) { ticker, _, server in
            var first = await ticker.observeTicks().makeAsyncIterator()
            await haveStarted(server, 1)
            try await ticker.tick(3)
            var second = await ticker.observeTicks().makeAsyncIterator()
            await haveStarted(server, 2)
            try await ticker.tick(1)
            #expect(try await second.next()?.number == 4)
            for number in 1...4 { #expect(try await first.next()?.number == number) }
        }
    }

    @Test("a subscription and a call sent together deliver the call's event, also without resume retention")
    func orderAtStart() async throws {
        var limits = ServerLimits()
        limits.streams.resumeRetention = .zero
        try await withTicker(.webSocket, limits: limits) { _, _, server in
            // From both reactors.
            for number in 1...8 {
                let peer = try await RawPeer.connect(#require(server.address))
                await peer.together {
                    peer.invoke("o", "ticker", "observeTicks")
                    peer.invoke("t", "ticker", "tick(_:padding:)", "[1,0]")
                }
                #expect(try #require(await peer.nextText()).contains(#""sequenceNumber":\#(number - 1)"#))
                #expect(try #require(await peer.nextText()).contains(#""number":\#(number)"#))
                #expect(try #require(await peer.nextText()).contains(#""callID":"t""#))
                peer.close()
                await haveStarted(server, 0)
            }
        }
    }

    @Test("an event is encoded once for all subscribers, and not at all without subscribers")
    func encodes() async throws {
        try await withTicker(.webSocket) { ticker, _, server in
            try await ticker.tick(10)
            #expect(await server.encodeCount(of: "ticker", "observeTicks") == 0)
            var readers: [EventStream<Ticker.Tick>.Iterator] = []
            for _ in 0..<8 { readers.append(await ticker.observeTicks().makeAsyncIterator()) }
            await haveStarted(server, 8)
            try await ticker.tick(10)
            for index in readers.indices { #expect(try await readers[index].next()?.number == 11) }
            #expect(await server.encodeCount(of: "ticker", "observeTicks") == 10)
        }
    }

    @Test(
        "every change is a version of a state with delivery `.every`, from the current value on",
        arguments: TestLink.allCases)
    func versions(link: TestLink) async throws {
        try await withTicker(link) { ticker, _, server in
            try await ticker.tick(5)
            var counts = await ticker.observeCount().makeAsyncIterator()
            #expect(await counts.next() == 5)
            try await ticker.tick(40)
            for count in 6...45 { #expect(await counts.next() == count) }
            var pages = await ticker.observePage().makeAsyncIterator()
            #expect(await pages.next() == [])
            for line in 0..<40 { try await ticker.write("a line that is long enough for differences \(line)") }
            for lines in 1...40 { #expect(await pages.next()?.count == lines) }
        }
    }

    @Test("a reader that exceeds its buffer gets an error")
    func slowReader() async throws {
        try await withTicker(.webSocket) { ticker, client, server in
            var ticks = await ticker.observeTicks().makeAsyncIterator()
            let counts = await ticker.observeCount()
            var reader = counts.makeAsyncIterator()
            #expect(await reader.next() == 0)
            await haveStarted(server, 1)
            // Separate calls, so that the server sends every version.
            for _ in 0..<100 { try await ticker.tick(1) }
            for number in 1...64 { #expect(try await ticks.next()?.number == number) }
            let error = await #expect(throws: TrebuchetError.self) { try await ticks.next() }
            #expect(error?.code == .overflow)
            for count in 1...64 { #expect(await reader.next() == count) }
            #expect(await reader.next() == nil)
            guard case .failed(let failure) = counts.outcome else {
                Issue.record("the stream ended without an error")
                return
            }
            #expect(failure.code == .overflow)
        }
    }

    @Test("a connection that is too slow loses its stream with an error, and others do not")
    func slowConnection() async throws {
        try await withTicker(.webSocket) { ticker, _, server in
            let peer = try await RawPeer.connect(#require(server.address))
            peer.send(
                #"{"type":"invocation","payload":{"callID":"o","actorID":"ticker","targetIdentifier":"observeTicks"}}"#)
            #expect(try #require(await peer.nextText()).contains(#""sequenceNumber":0"#))
            var other = await ticker.observeTicks().makeAsyncIterator()
            await haveStarted(server, 2)
            await peer.pauseReading()
            // More than the kernel's buffers and the server's buffer hold.
            for number in 1...400 {
                try await ticker.tick(1, padding: 100_000)
                #expect(try await other.next()?.number == number)
            }
            await peer.resumeReading()
            var last = 0
            while let text = await peer.nextText() {
                if text.contains("streamError") {
                    #expect(text.contains(#""code":"overflow""#))
                    break
                }
                let sequence = try #require(text.firstMatch(of: /"sequenceNumber":(\d+)/).flatMap { Int($0.1) })
                #expect(sequence == last + 1)
                last = sequence
            }
            #expect(last < 400)
            peer.close()
        }
    }

    /// Runs `body` with a client behind a link that the test can cut.
    private func withLink(
        _ server: TrebuchetServer, _ body: (FaultyLink, TrebuchetClient, Ticker) async throws -> Void
    ) async throws {
        let link = try FaultyLink(to: #require(server.address), seed: 1, faults: .none)
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        let client = TrebuchetClient(
            transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
        try await client.connect()
        try await body(link, client, client.resolve(Ticker.self, id: "ticker"))
        await client.close()
        await link.close()
    }

    @Test("events and versions missed during a disconnection arrive after it, also without other subscribers")
    func resumption() async throws {
        try await withTicker(.webSocket) { ticker, _, server in
            try await withLink(server) { link, client, far in
                var ticks = await far.observeTicks().makeAsyncIterator()
                var counts = await far.observeCount().makeAsyncIterator()
                #expect(await counts.next() == 0)
                await haveStarted(server, 1)
                var number = 0
                for _ in 0..<5 {
                    try await link.refuseConnections {
                        await link.disconnectAll(.reset)
                        await haveStarted(server, 0)
                        try await ticker.tick(7)
                    }
                    for _ in 0..<7 {
                        number += 1
                        #expect(try await ticks.next()?.number == number)
                        #expect(await counts.next() == number)
                    }
                }
            }
        }
    }

    @Test("a client that was away for longer than the buffer reaches gets an error about missed events")
    func missed() async throws {
        try await withTicker(.webSocket) { ticker, _, server in
            try await withLink(server) { link, client, far in
                var ticks = await far.observeTicks().makeAsyncIterator()
                let stream = await far.observeCount()
                var counts = stream.makeAsyncIterator()
                #expect(await counts.next() == 0)
                await haveStarted(server, 1)
                try await link.refuseConnections {
                    await link.disconnectAll(.reset)
                    await haveStarted(server, 0)
                    try await ticker.tick(65)
                }
                let error = await #expect(throws: TrebuchetError.self) { try await ticks.next() }
                #expect(error?.code == .overflow)
                #expect(await counts.next() == nil)
                #expect(
                    stream.outcome.map { if case .failed(let error) = $0 { error.code == .overflow } else { false } }
                        == true)
            }
        }
    }

    @Test("event streams of a reactivated actor report a gap; a state starts with its new value")
    func reactivatedActor() async throws {
        try await withTicker(.webSocket) { ticker, _, server in
            try await withLink(server) { link, client, far in
                var ticks = await far.observeTicks().makeAsyncIterator()
                var counts = await far.observeCount().makeAsyncIterator()
                #expect(await counts.next() == 0)
                await haveStarted(server, 1)
                let another = Ticker(actorSystem: server.actorSystem)
                try await another.tick(1)
                try await link.refuseConnections {
                    await link.disconnectAll(.reset)
                    await haveStarted(server, 0)
                    await server.expose(another, as: "ticker")
                }
                let error = await #expect(throws: TrebuchetError.self) { try await ticks.next() }
                #expect(error?.code == .overflow)
                #expect(await counts.next() == 1)
            }
        }
    }

    @Test("after an overflow error, the client and all others get the following events")
    func eventsAfterOverflow() async throws {
        try await withTicker(.webSocket, reactors: 1) { ticker, _, server in
            func observe(_ peer: RawPeer) async throws {
                peer.send(
                    #"{"type":"invocation","payload":{"callID":"o","actorID":"ticker","targetIdentifier":"observeTicks"}}"#
                )
                #expect(try #require(await peer.nextText()).contains("streamStart"))
            }
            let back = try await RawPeer.connect(#require(server.address))
            back.send(
                #"{"type":"streamResume","payload":{"streamID":"s1","callID":"r","actorID":"ticker","#
                    + #""targetIdentifier":"observeTicks","epoch":"another","lastSequence":5}}"#)
            // The stream has not started: otherwise the client would continue without knowing that it missed events.
            let refusal = try #require(await back.nextText())
            #expect(refusal.contains(#""type":"response""#) && refusal.contains(#""code":"overflow""#))
            #expect(await server.subscriberCount(of: "ticker", "observeTicks") == 0)
            let new = try await RawPeer.connect(#require(server.address))
            try await observe(back)
            try await observe(new)
            try await ticker.tick(1)
            for peer in [back, new] {
                #expect(try #require(await peer.nextText()).contains(#""number":1"#))
                peer.close()
            }
        }
    }

    @Test("an event that cannot be encoded ends the streams, instead of being omitted")
    func unencodable() async throws {
        try await withTestServer { server in
            await server.expose(Thermometer(actorSystem: server.actorSystem), as: "ticker")
        } body: { client, server in
            let thermometer = try client.resolve(Thermometer.self, id: "ticker")
            var readings = await thermometer.observeReadings().makeAsyncIterator()
            await haveStarted(server, 1, "observeReadings")
            try await thermometer.read(1)
            try await thermometer.read(0)
            try await thermometer.read(2)
            #expect(try await readings.next() == 1)
            let error = await #expect(throws: TrebuchetError.self) { try await readings.next() }
            #expect(error?.message.contains("an event of type Double cannot be encoded") == true)
        }
    }

    @Test("a local actor, and one on the global pool, omit nothing either")
    func local() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        var ticker: Ticker? = Ticker(actorSystem: server.actorSystem)
        let haveStarted = await ticker?.observeTicks()
        let counted = await ticker?.observeCount()
        var ticks = try #require(haveStarted).makeAsyncIterator()
        var counts = try #require(counted).makeAsyncIterator()
        #expect(await counts.next() == 0)
        try await ticker?.tick(60)
        for number in 1...60 {
            #expect(try await ticks.next()?.number == number)
            #expect(await counts.next() == number)
        }
        ticker = nil
        let error = await #expect(throws: TrebuchetError.self) { try await ticks.next() }
        #expect(error?.code == .actorNotFound)
        #expect(await counts.next() == nil)

        let pool = PoolTicker(actorSystem: server.actorSystem)
        var numbers = await pool.observeTicks().makeAsyncIterator()
        try await pool.tick(100)
        for number in 1...100 { #expect(try await numbers.next() == number) }
        await server.shutdown(drain: .zero)
    }

    @Test("each event property is observed by its name")
    func raw() async throws {
        try await withTicker(.webSocket) { ticker, client, server in
            var ticks = client.observe(actor: "ticker", stream: "observeTicks").makeAsyncIterator()
            await haveStarted(server, 1)
            try await ticker.tick(3)
            for number in 1...3 {
                let text = try await ticks.next().map { String(decoding: $0, as: UTF8.self) }
                #expect(text?.contains(#""number":\#(number)"#) == true)
            }
            let near = try Ticker.resolve(id: TrebuchetActorID("ticker"), using: server.actorSystem)
            let encoded = await near.whenLocal { await $0._getStream(for: "ticks") } ?? nil
            var data = try #require(encoded).makeAsyncIterator()
            let sending = Task { while !Task.isCancelled { try await ticker.tick(1) } }
            #expect(await data.next() != nil)
            sending.cancel()
        }
    }
}
