import Platform
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Persisted events across the end of their server, orderly or not.
@Suite(.timeLimit(.minutes(5))) struct EventRestartTests {
    enum Ending: CaseIterable { case stopped, killed }

    private func withEventProducer(
        onDemand: Bool = false, _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTestServer(reactors: 2, store: MemoryStore()) { server in
            let system = server.actorSystem
            if onDemand {
                server.expose(EventProducerActor.self, as: "mills/*") { _ in EventProducerActor(actorSystem: system) }
            } else {
                await server.expose(EventProducerActor(actorSystem: system), as: "mills/a")
            }
        } body: { (test: TestServer) async throws in
            try await body(test)
        }
    }

    private func end(_ test: TestServer, _ ending: Ending) async {
        switch ending {
        case .stopped: await test.stop(drain: .zero)
        case .killed: await test.kill()
        }
    }

    private func client(_ test: TestServer) async throws -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        return try await test.connect(options)
    }

    private func haveStarted(_ test: TestServer, _ count: Int, _ stream: String = "observeSacks") async {
        #expect(await eventually { await test.server.subscriberCount(of: "mills/a", stream) == count })
    }

    @Test("a caller sees the changes and events of a call before its response")
    func beforeAnswer() async throws {
        try await withEventProducer { (test) async throws in
            let peer = try await RawPeer.connect(test.address)
            for stream in ["observeSteps", "observeSacks", "observeTotal"] {
                peer.invoke("o", "mills/a", stream)
                #expect(try #require(await peer.nextText()).contains("streamStart"))
                if stream != "observeSacks" { #expect(try #require(await peer.nextText()).contains("streamData")) }
            }
            // Its response waits for the write that the observation causes.
            peer.invoke("t", "mills/a", "ground()")
            #expect(try #require(await peer.nextText()).contains("response"))
            peer.invoke("c", "mills/a", "grind(_:)", "[2]")
            var messages: [String] = []
            while let text = await peer.nextText() {
                messages.append(text)
                if text.contains("response") { break }
            }
            func indices(_ stream: String) -> [Int] {
                messages.indices.filter { messages[$0].contains(#""streamID":"\#(stream)""#) }
            }
            // The state with delivery `.every`, the events, and the state with conflation.
            let (steps, sacks, total) = (indices("s1"), indices("s2"), indices("s3"))
            #expect(steps.count == 2 && sacks.count == 2 && total.count == 1 && messages.count == 6, "\(messages)")
            peer.close()
        }
    }

    @Test("readers continue across a restart, without loss or duplicates", arguments: Ending.allCases, [false, true])
    func readersContinue(ending: Ending, onDemand: Bool) async throws {
        try await withEventProducer(onDemand: onDemand) { (test) async throws in
            let (first, second) = try await (client(test), client(test))
            let mill = try first.resolve(EventProducerActor.self, id: "mills/a")
            var readers = [
                await mill.observeSacks().makeAsyncIterator(),
                await (try second.resolve(EventProducerActor.self, id: "mills/a")).observeSacks().makeAsyncIterator(),
            ]
            var steps = await mill.observeSteps().makeAsyncIterator()
            #expect(await steps.next() == 0)
            await haveStarted(test, 2)
            var sent = 0
            for round in 0..<3 {
                for _ in 0..<5 { sent = try await mill.grind(4) }
                if round > 0 { await end(test, ending) }
                if round > 0 { try await test.restart() }
                // A client that has not noticed the cut yet may lose its next call.
                await haveStarted(test, 2)
                for index in readers.indices {
                    for number in sent - 19...sent {
                        #expect(try await readers[index].next() == number, "\(ending), round \(round)")
                    }
                }
                for number in sent - 19...sent { #expect(await steps.next() == number) }
            }
        }
    }

    @Test(
        "a reader that subscribed before the first event continues across a restart too", arguments: Ending.allCases,
        [false, true])
    func beforeTheFirst(ending: Ending, onDemand: Bool) async throws {
        try await withEventProducer(onDemand: onDemand) { (test) async throws in
            let mill = try await client(test).resolve(EventProducerActor.self, id: "mills/a")
            var sacks = await mill.observeSacks().makeAsyncIterator()
            await haveStarted(test, 1)
            // Its response waits for the write that the observation causes.
            #expect(try await mill.ground() == 0)
            await end(test, ending)
            try await test.restart()
            await haveStarted(test, 1)
            _ = try await mill.grind(2)
            for number in 1...2 { #expect(try await sacks.next() == number) }
        }
    }

    @Test("a deactivated actor continues its events after activation; an empty log is removed with it")
    func deactivation() async throws {
        let store = MemoryStore()
        var limits = ServerLimits()
        limits.streams.resumeRetention = .zero
        try await withTestServer(reactors: 1, limits: limits, store: store) { server in
            let system = server.actorSystem
            server.expose(EventProducerActor.self, as: "mills/*", idle: .seconds(300)) { _ in
                EventProducerActor(actorSystem: system)
            }
        } body: { (client, server) async throws in
            let mill = try client.resolve(EventProducerActor.self, id: "mills/a")
            let (sacks, few) = (StateKey("events", "mills/a.sacks"), StateKey("events", "mills/a.few"))
            func waitForDeactivation() async {
                for stream in ["observeSacks", "observeFew"] {
                    #expect(await eventually { await server.subscriberCount(of: "mills/a", stream) == 0 })
                }
                for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
                #expect(await eventually { server.actorCount == 0 })
            }
            var place: EventBookmark?
            do {
                let stream = await mill.observeSacks()
                #expect(await eventually { stream.bookmark != nil })
                #expect(try await mill.ground() == 0)
                #expect(try await store.readLog(sacks)?.lastVersion == 0)
            }
            await waitForDeactivation()
            #expect(try await eventually { try await store.readLog(sacks) == nil })
            do {
                let stream = await mill.observeSacks()
                #expect(await eventually { stream.bookmark != nil })
                place = stream.bookmark
                #expect(try await mill.grind(3) == 3)
            }
            await waitForDeactivation()
            #expect(try await store.readLog(sacks)?.lastVersion == 3)
            #expect(try await store.readLog(few)?.lastVersion == 3)
            var reader = await mill.observeSacks(since: place).makeAsyncIterator()
            for number in 1...3 { #expect(try await reader.next() == number) }
        }
    }

    @Test("a restarted program continues after the last event that it has seen", arguments: Ending.allCases)
    func startedAgain(ending: Ending) async throws {
        try await withEventProducer { (test) async throws in
            let before = try await client(test)
            let mill = try before.resolve(EventProducerActor.self, id: "mills/a")
            let stream = await mill.observeSacks()
            var sacks = stream.makeAsyncIterator()
            await haveStarted(test, 1)
            #expect(await eventually { stream.bookmark?.sequence == 0 })
            _ = try await mill.grind(10)
            for number in 1...4 { #expect(try await sacks.next() == number) }
            let place = try #require(stream.bookmark)
            #expect(place.sequence == 4)
            await before.close()
            await end(test, ending)
            try await test.restart()
            let after = try await client(test).resolve(EventProducerActor.self, id: "mills/a")
            let goingOn = await after.observeSacks(since: place)
            var rest = goingOn.makeAsyncIterator()
            for number in 5...10 { #expect(try await rest.next() == number) }
            #expect(goingOn.bookmark == EventBookmark(epoch: place.epoch, sequence: 10))
            _ = try await after.grind(1)
            #expect(try await rest.next() == 11)
        }
    }

    @Test("all persisted events may reach a slow reader at once, followed by the new ones")
    func allOfIt() async throws {
        try await withEventProducer { (test) async throws in
            let mill = try await client(test).resolve(EventProducerActor.self, id: "mills/a")
            let place = await mill.observeSacks()
            #expect(await eventually { place.bookmark != nil })
            for _ in 0..<10 { _ = try await mill.grind(100) }
            let epoch = try #require(place.bookmark?.epoch)
            try await test.restart()
            let stream = await mill.observeSacks(since: EventBookmark(epoch: epoch, sequence: 0))
            await haveStarted(test, 2)
            _ = try await mill.grind(200)
            var all = stream.makeAsyncIterator()
            for number in 1...1_200 { #expect(try await all.next() == number) }
        }
    }

    @Test(
        "a reader from before the oldest event or of another epoch gets an error; nil starts afresh",
        arguments: Ending.allCases)
    func overflow(ending: Ending) async throws {
        try await withEventProducer { (test) async throws in
            let mill = try await client(test).resolve(EventProducerActor.self, id: "mills/a")
            let stream = await mill.observeFew()
            await haveStarted(test, 1, "observeFew")
            _ = try await mill.grind(1)
            var few = stream.makeAsyncIterator()
            #expect(try await few.next() == 1)
            let place = try #require(stream.bookmark)
            _ = try await mill.grind(300)
            await end(test, ending)
            try await test.restart()
            for lost in [place, EventBookmark(epoch: "another", sequence: 301)] {
                var since = await mill.observeFew(since: lost).makeAsyncIterator()
                let error = await #expect(throws: TrebuchetError.self) { try await since.next() }
                #expect(error?.code == .overflow)
            }
            let anew = await mill.observeFew(since: nil)
            await haveStarted(test, 1, "observeFew")
            _ = try await mill.grind(1)
            var reader = anew.makeAsyncIterator()
            #expect(try await reader.next() == 302)
        }
    }

    @Test("events that are not persisted report a gap after a restart")
    func notPersisted() async throws {
        try await withEventProducer { (test) async throws in
            let mill = try await client(test).resolve(EventProducerActor.self, id: "mills/a")
            let stream = await mill.observeDust()
            await haveStarted(test, 1, "observeDust")
            _ = try await mill.grind(3)
            var dust = stream.makeAsyncIterator()
            #expect(try await dust.next() == 1)
            // While their server runs, they continue after a bookmark as others do.
            let again = await mill.observeDust(since: stream.bookmark)
            var rest = again.makeAsyncIterator()
            for number in 2...3 { #expect(try await rest.next() == number) }
            await test.kill()
            try await test.restart()
            let error = await #expect(throws: TrebuchetError.self) { while try await rest.next() != nil {} }
            #expect(error?.code == .overflow)
        }
    }

    @Test("for each event that was seen, a killed server has the change of its call", arguments: 1...4)
    func together(seed: UInt64) async throws {
        var random = RandomSource(seed: seed)
        try await withEventProducer { (test) async throws in
            let client = try await client(test)
            let mill = try client.resolve(EventProducerActor.self, id: "mills/a")
            var sacks = await mill.observeSacks().makeAsyncIterator()
            await haveStarted(test, 1)
            var seen = 0
            for _ in 0..<5 {
                let load = Task { while !Task.isCancelled { _ = try? await mill.grind(3) } }
                let until = seen + Int.random(in: 1...40, using: &random)
                while seen < until {
                    seen += 1
                    #expect(try await sacks.next() == seen)
                }
                await test.kill()
                try await test.restart()
                load.cancel()
                let own = try EventProducerActor.resolve(
                    id: TrebuchetActorID("mills/a"), using: test.server.actorSystem)
                #expect(try await own.ground() >= seen)
                await load.value
            }
            // Asked at the server: the client may not know yet that its connection has ended.
            let own = try EventProducerActor.resolve(
                id: TrebuchetActorID("mills/a"), using: test.server.actorSystem)
            let total = try await own.ground()
            while seen < total {
                seen += 1
                #expect(try await sacks.next() == seen)
            }
        }
    }
}

/// Counts the sacks it grinds, and sends an event for each.
@Trebuchet
distributed actor EventProducerActor {
    @StreamedEvents(persisted: true) var sacks: Int
    @StreamedEvents(buffer: 4, persisted: true, keeping: 16) var few: Int
    @StreamedEvents var dust: Int
    @StreamedState(delivery: .every(), persisted: true) var steps: Int = 0
    @StreamedState(persisted: true) var total: Int = 0

    distributed func grind(_ times: Int) -> Int {
        for _ in 0..<times {
            steps += 1
            total = steps
            $sacks.send(steps)
            $few.send(steps)
            $dust.send(steps)
        }
        return steps
    }
    distributed func ground() -> Int { steps }
}
