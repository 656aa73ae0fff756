import Networking
import Platform
import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetInspector

/// The events recorded while the inspector is in use, and only then.
@Suite(.timeLimit(.minutes(5))) struct InspectorRecorderTests {
    @Test("calls are recorded from the first request on, with caller and outcome, and can be read from a position")
    func calls() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("before anybody looks")
            #expect(try await rig.json("/inspect/calls")["calls"].list.isEmpty)
            try await shelf.signIn(as: "ada")
            _ = try await shelf.put("secret")
            await #expect(throws: TrebuchetError.self) { try await shelf.refuse("secret") }
            let shown = try await rig.json("/inspect/calls")
            let calls = shown["calls"].list
            #expect(calls.map { $0["method"].text } == ["refuse(_:)", "put(_:)", "signIn(as:)"])
            #expect(calls.map { $0["error"].text } == ["application", nil, nil])
            #expect(calls.prefix(2).allSatisfy { $0["principal"].text == "ada" })
            #expect(calls.allSatisfy { $0["actor"].text == "shelf" && ($0["seconds"].value as? Double ?? 0) > 0 })
            // With their arguments, and without their results.
            #expect(calls.prefix(2).map { $0["arguments"].texts } == [["secret"], ["secret"]])
            #expect(calls.allSatisfy { $0["result"].value == nil })
            let last = try #require(shown["last"].count)
            #expect(try await rig.json("/inspect/calls?after=\(last)")["calls"].list.isEmpty)
            #expect(try await rig.json("/inspect/calls?after=\(last - 1)")["calls"].list.count == 1)
            let trace = TraceContext()
            _ = try await TraceContext.with(trace) { try await shelf.put("more") }
            let more = try await rig.json("/inspect/calls?after=\(last)")["calls"].list
            #expect(more.map { $0["method"].text } == ["put(_:)"])
            #expect(more.first?["trace"].text == trace.traceID && calls.allSatisfy { $0["trace"].text == nil })
        }
    }

    @Test("actors whose names look the same and have different bytes are separate")
    func sameQuery() async throws {
        let names = ["Ren\u{e9}", "Rene\u{301}"]
        try await InspectorRig.with { server in
            for name in names { await server.expose(Shelf(actorSystem: server.actorSystem), as: name) }
        } _: { client, _, rig async throws in
            let paths = ["Ren%C3%A9", "Rene%CC%81"]
            for path in paths { try await rig.follow(path) }
            _ = try await client.resolve(Shelf.self, id: names[1]).put("a")
            var shown: [[InspectedValue]] = []
            for path in paths { shown.append(try await rig.json("/inspect/actors/\(path)")["calls"].list) }
            #expect(shown.map(\.count) == [0, 1])
            for (name, path) in zip(names, paths) {
                let versions = try await rig.json("/inspect/actors/\(path)")["recorded"]["versions"].list
                #expect(versions.isEmpty == (name.utf8.count == names[0].utf8.count))
            }
        }
    }

    @Test("the last of very many calls are retained")
    func ring() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            _ = try await rig.json("/inspect/calls")
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            // Calls in too quick succession are not all recorded.
            while try await rig.json("/inspect/calls?limit=1")["last"].count ?? 0 < 2_100 {
                for _ in 0..<500 { _ = try await shelf.put("") }
            }
            let shown = try await rig.json("/inspect/calls?limit=2000")
            let last = try #require(shown["last"].count)
            #expect(shown["retained"].count == 2_000)
            #expect(shown["calls"].list.map { $0["number"].count } == (last - 1_999...last).reversed().map { $0 })
        }
    }

    @Test("an actor is shown with its state, and each version with its patch, its calls and its recipients")
    func versions() async throws {
        try await InspectorRig.with { client, server, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            let long = String(repeating: "a", count: 200)
            _ = try await shelf.put(long)
            let first = try await rig.json("/inspect/actors/shelf")
            #expect(first["type"].text == "ObservabilityTests.Shelf")
            #expect(first["states"].list.first?["stream"].text == "observeBooks")
            #expect(first["states"].list.first?["value"].texts == [long])
            #expect(first["states"].list.first?["subscribers"].count == 0)
            #expect(first["recorded"]["versions"].list.isEmpty)
            // The inspector is the only observer.
            try await shelf.signIn(as: "ada")
            _ = try await shelf.put("alone")
            let port = try #require(server.address).port
            let other = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
            try await other.connect()
            var seen = try await other.resolve(Shelf.self, id: "shelf").observeBooks().makeAsyncIterator()
            #expect(await seen.next()?.count == 2)
            _ = try await shelf.putLater("seen")
            #expect(await seen.next()?.count == 3)
            let shown = try await rig.json("/inspect/actors/shelf")
            #expect(shown["states"].list.first?["value"].texts == [long, "alone", "seen"])
            #expect(shown["states"].list.first?["subscribers"].count == 1)
            let versions = shown["recorded"]["versions"].list
            #expect(versions.map { $0["calls"].list.map { $0["method"].text } } == [["putLater(_:)"], ["put(_:)"]])
            #expect(versions.allSatisfy { $0["calls"].list.allSatisfy { $0["principal"].text == "ada" } })
            #expect(versions.map { $0["delivered"]["patch"].count } == [1, 0])
            #expect(versions.map { $0["patch"].list.count } == [1, 1], "\(versions)")
            #expect(versions[0]["base"].count == versions[1]["version"].count)
            #expect(versions[0]["version"].count == shown["states"].list.first?["version"].count)
            #expect(try await rig.json("/inspect/actors/shelf?versions=1")["recorded"]["versions"].list.count == 1)
            await other.close()
        }
    }

    @Test("each of very many concurrent calls is listed in the version to which it contributed")
    func merged() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            _ = try await rig.json("/inspect/actors/shelf")
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            // For a state of this size the inspector records all versions only when it has another observer.
            var observer = await shelf.observeBooks().makeAsyncIterator()
            #expect(await observer.next() == [])
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Larger than the data that a turn sends, so that some changes are conflated.
                for _ in 0..<40 { group.addTask { _ = try await shelf.put(String(repeating: "a", count: 20_000)) } }
                try await group.waitForAll()
            }
            let looked = try await eventually {
                let versions = try await rig.json("/inspect/actors/shelf?versions=200")["recorded"]["versions"].list
                let calls = versions.flatMap { $0["calls"].list.compactMap { $0["call"].count } }
                return calls.count == 40 && Set(calls).count == 40
            }
            #expect(looked)
        }
    }

    @Test("half a minute after the last request recording stops, and the recorded data is removed")
    func forgotten() async throws {
        let clock = TestTime()
        try await InspectorRig.with(clock: clock) { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            try await rig.follow("shelf")
            _ = try await shelf.put("a")
            // The time counts from the last request. The clock also runs by itself, which must not take 22 s for a step.
            for _ in 0..<4 {
                await clock.advance(by: .seconds(8))
                #expect(try await rig.json("/inspect/actors/shelf")["recorded"]["versions"].list.count == 1)
            }
            _ = try await shelf.put("b")
            #expect(try await rig.json("/inspect/actors/shelf")["recorded"]["versions"].list.count == 2)
            #expect(try await rig.json("/inspect/calls")["last"].count == 2)
            let made = try #require(try await rig.json("/inspect/overview")["versions"].count)
            await clock.advance(by: .seconds(31))
            _ = try await shelf.put("c")
            // No version was made, as the state has no observer.
            #expect(try await rig.json("/inspect/overview")["versions"].count == made)
            #expect(try await rig.json("/inspect/calls")["last"].count == 0)
            #expect(try await rig.json("/inspect/actors/shelf")["recorded"]["versions"].list.isEmpty)
            _ = try await shelf.put("d")
            #expect(try await rig.json("/inspect/calls")["last"].count == 1)
        }
    }

    @Test("a log line has the time of its event, even for the end of a long call")
    func oldCall() {
        var ring = RecentCallBuffer()
        let peer = ServerEvent.Peer(connection: 1, address: nil, principal: nil)
        func call(_ number: UInt64) -> ServerEvent.Call {
            ServerEvent.Call(number: number, peer: peer, actor: "a", type: "A", method: "f()")
        }
        ring.recordStart(call(1))
        // As many other calls as the buffer finds by number.
        for number in 2...5_000 as ClosedRange<UInt64> {
            ring.recordStart(call(number))
            ring.recordEnd(call(number), .zero, nil)
        }
        ring.recordEnd(call(1), .seconds(2), nil)
        let ended = ring.newest[0]
        #expect(abs((ended.outcome.event?.time ?? 0) - WallTime.milliseconds) < 60_000)
        #expect(ended.outcome.members.contains { $0.0 == "time" && "\($0.1)" != "null" })
    }

    @Test("calls of an actor that is not inspectable are recorded from the first request on, like those of others")
    func hidden() async throws {
        try await InspectorRig.with { server in
            await server.expose(Closed(actorSystem: server.actorSystem), as: "closed", inspectable: false)
        } _: { client, _, rig async throws in
            let closed = try client.resolve(Closed.self, id: "closed")
            for _ in 0..<3 {
                _ = try await rig.json("/inspect/actors/closed")
                try await closed.put("a")
            }
            #expect(try await rig.json("/inspect/actors/closed")["calls"].list.count == 3)
        }
    }

    @Test("inspection has no side effects: an idle actor is deactivated even while it is inspected")
    func queriesExtendRecording() async throws {
        let clock = TestTime()
        try await InspectorRig.with(clock: clock) { server in
            server.expose(Shelf.self, as: "shelves/*", idle: .seconds(1), discarding: true) { [weak server] _ in
                Shelf(actorSystem: server!.actorSystem)
            }
        } _: { client, server, rig async throws in
            for name in ["shelves/a", "shelves/b"] { _ = try await client.resolve(Shelf.self, id: name).put("a") }
            // A subscriber does keep its actor active.
            let observed = try client.resolve(Shelf.self, id: "shelves/c")
            var books = await observed.observeBooks().makeAsyncIterator()
            #expect(await books.next() == [])
            func isThere(_ name: String) async throws -> Bool {
                try await rig.json("/inspect/actors?search=\(name)")["actors"].list.first?["ready"].flag == true
            }
            for _ in 0..<20 {
                for name in ["a", "c"] { _ = try await rig.answer("/inspect/actors/shelves%2F\(name)") }
                await clock.advance(by: .seconds(1))
            }
            #expect(try await !isThere("shelves/b"))
            #expect(try await !isThere("shelves/a"), "inspection keeps the actor active, for 20 times its idle time")
            #expect(try await isThere("shelves/c"))
        }
    }

    @Test("all calls are recorded at a low rate, even while an actor with a large state is inspected")
    func largeState() async throws {
        try await InspectorRig.with { server in
            await server.expose(Bulky(actorSystem: server.actorSystem), as: "bulky")
        } _: { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            let bulky = try client.resolve(Bulky.self, id: "bulky")
            // A page requests it each second; here several requests follow in quick succession.
            for _ in 0..<3 {
                _ = try await rig.json("/inspect/actors/bulky")
                try await bulky.touch()
            }
            for _ in 0..<20 { _ = try await shelf.put("") }
            let shown = try await rig.json("/inspect/calls?actor=shelf")
            #expect(shown["calls"].list.count == 20 && shown["pauses"].count == 0)
        }
    }

    @Test("events of other reactors are recorded while the first one is blocked")
    func blockedReactor() async throws {
        try await withTestServer(clock: TestTime(reactors: 2)) { _ in
        } body: { _, server async throws in
            let recorder = InspectorRecorder(server.view)
            _ = await recorder.calls(try CallListQuery(InspectorQuery("")))
            let gate = ThreadSemaphore()
            server.shards[0].reactor.execute { gate.wait() }
            defer { gate.signal() }
            let peer = ServerEvent.Peer(connection: 1, address: nil, principal: nil)
            func tell(_ number: UInt64) {
                let call = ServerEvent.Call(number: number, peer: peer, actor: "a", type: "A", method: "f()")
                server.context.events.emit(.callStarted(call))
                server.context.events.emit(.callEnded(call, duration: .zero, error: nil))
            }
            for number in 1...300 as ClosedRange<UInt64> { tell(number) }
            #expect(recorder.pauses == 1)
            let countBefore = recorder.recordedEventCount
            var number: UInt64 = 301
            let continues = await eventually {
                tell(number)
                number += 1
                return recorder.recordedEventCount > countBefore
            }
            #expect(continues)
            recorder.stop()
        }
    }

    @Test("a replaced actor is recorded from the beginning, and a removed one is not found")
    func replaced() async throws {
        try await InspectorRig.with { client, server, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await rig.json("/inspect/actors/shelf")
            _ = try await shelf.put("old")
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
            let anew = try await rig.json("/inspect/actors/shelf")
            #expect(anew["states"].list.first?["value"].texts == [] && anew["recorded"]["versions"].list.isEmpty)
            _ = try await shelf.put("new")
            let shown = try await rig.json("/inspect/actors/shelf")
            #expect(shown["states"].list.first?["value"].texts == ["new"])
            #expect(shown["recorded"]["versions"].list.count == 1)
            await server.unexpose("shelf")
            #expect(InspectorRig.status(try await rig.answer("/inspect/actors/shelf")) == "404")
        }
    }
}

/// An actor with a large state.
@Trebuchet
distributed actor Bulky {
    @StreamedState var texts: [String] = (0..<400).map { _ in String(repeating: "a", count: 10_000) }

    distributed func touch() { texts[0] += "b" }
}
