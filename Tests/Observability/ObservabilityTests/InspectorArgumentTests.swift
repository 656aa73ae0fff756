import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetInspector

/// The arguments of calls, which are shown unless they are redacted, and the recorder's rate limit.
@Suite(.timeLimit(.minutes(5))) struct InspectorArgumentTests {
    @Test("arguments are shown, except those of @Redacted methods, of types that are not inspectable, and long ones")
    func arguments() async throws {
        try await InspectorRig.with { server in
            await server.expose(Safe(actorSystem: server.actorSystem), as: "safe")
            await server.expose(Closed(actorSystem: server.actorSystem), as: "closed", inspectable: false)
        } _: { client, _, rig async throws in
            _ = try await rig.json("/inspect/calls")
            let safe = try client.resolve(Safe.self, id: "safe")
            let closed = try client.resolve(Closed.self, id: "closed")
            try await safe.put("shown", 2)
            try await safe.open(with: "hidden-1")
            try await safe.openLater(with: "hidden-2")
            try await closed.put("hidden-3")
            try await safe.put(String(repeating: "a", count: 5_000), 3)
            let answer = try await rig.answer("/inspect/calls")
            #expect(!answer.contains("hidden") && !answer.contains("aaaa"))
            let calls = try await rig.json("/inspect/calls")["calls"].list
            #expect(
                calls.map { $0["method"].text } == [
                    "put(_:_:)", "put(_:)", "openLater(with:)", "open(with:)", "put(_:_:)",
                ])
            #expect(calls.map { $0["redacted"].flag } == [nil, true, true, true, nil])
            #expect((calls[0]["argumentBytes"].count ?? 0) > 5_000 && calls[0]["arguments"].value == nil)
            #expect(calls[4]["arguments"].list.map { $0.text ?? "\($0.count ?? 0)" } == ["shown", "2"])
            // Its state is hidden as well, in every form.
            let hidden = try await rig.answer("/inspect/actors/closed?earlier=1")
            #expect(hidden.contains(#""hidden":true"#) && !hidden.contains("hidden-3"), "\(hidden)")
            let shown = try await rig.json("/inspect/actors/safe?earlier=1")
            #expect(shown["states"].list.first?["value"].count == 2)
        }
    }

    @Test("the base value of the oldest version is shown, also after many versions, and all others follow from it")
    func earlier() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("before")
            let first = try await rig.json("/inspect/actors/shelf?earlier=1")["recorded"]["earlier"].list
            #expect(first.map { $0["value"].texts } == [["before"]])
            // Requests in between keep the rate below the recorder's limit, and the actor in the recorder on a slow machine.
            for number in 0..<300 {
                _ = try await rig.json("/inspect/actors/shelf?versions=1")
                _ = try await shelf.put("\(number)")
            }
            for size in [200, 200, 50, 1] {
                let shown = try await rig.json("/inspect/actors/shelf?earlier=1&versions=\(size)")["recorded"]
                let oldest = try #require(shown["versions"].list.last)
                let earlier = try #require(shown["earlier"].list.first)
                #expect(
                    shown["versions"].list.count == size && shown["count"].count == 200 && shown["limit"].count == 200)
                // It is the base of the oldest version, and of no other.
                #expect(oldest["base"].count != nil && oldest["base"].count == earlier["version"].count)
                #expect(oldest["previous"].count == oldest["base"].count)
                let texts = earlier["value"].texts
                #expect(texts.first == "before" && texts.last == "\(299 - size)" && texts.count == 301 - size)
                #expect((shown["completeSince"].count ?? 0) >= (shown["since"].count ?? .max))
            }
        }
    }

    @Test("JSON of the inspector has the same content without terminal control sequences")
    func json() {
        let shown = InspectorJSON.object([
            ("a\u{9B}\u{7F}", .text("\u{202E}é\u{E0001}✓")), ("b", .encoded(Array("\"\u{9B}é\u{200D}\"".utf8))),
        ])
        #expect(
            String(decoding: shown.bytes, as: UTF8.self)
                == #"{"a\u009b\u007f":"\u202eé\udb40\udc01✓","b":"\u009bé\u200d"}"#)
    }

    @Test("a burst of calls is recorded in part, and later calls are recorded again")
    func budget() throws {
        var budget = RecorderRateLimiter()
        let peer = ServerEvent.Peer(connection: 1, address: nil, principal: nil)
        let call = ServerEvent.Call(number: 1, peer: peer, actor: "a", type: "A", method: "f()")
        var (taken, rest): (Int, UInt64?) = (0, nil)
        while rest == nil, taken < 10_000 {
            rest = budget.consume(.callStarted(call), at: 1_000_000_000).events
            taken += 1
        }
        #expect(taken == 400 && rest == 100_000_000 && budget.isUsedUp && budget.pauses == 1)
        budget.renew()
        #expect(!budget.isUsedUp && budget.consume(.callStarted(call), at: 1_000_000_001).events == nil)
        // A lower rate is recorded indefinitely.
        for time in 1...50 {
            for _ in 0..<399 {
                #expect(budget.consume(.callStarted(call), at: UInt64(time) * 2_000_000_000).events == nil)
            }
        }
        #expect(budget.pauses == 1)
    }

    @Test(
        "a large state that changes rarely is encoded for each request of the inspector, and one that changes often is not"
    )
    func largeStates() {
        let stream = ServerEvent.Stream(actor: "a", type: "A", target: "observeState")
        func version(_ bytesForReaders: Int) -> ServerEvent {
            .versionCreated(
                ServerEvent.Version(
                    stream: stream, number: 1, calls: [], unnamedCallCount: 0, bytes: 1 << 20, isPatch: false,
                    bytesForReaders: bytesForReaders))
        }
        var (seldom, often, observed) = (RecorderRateLimiter(), RecorderRateLimiter(), RecorderRateLimiter())
        for second in 1...20 as ClosedRange<UInt64> {
            #expect(seldom.consume(version(1 << 20), at: second * 1_000_000_000).values == nil)
        }
        var now: UInt64 = 1_000_000_000
        let end = now + 10_000_000_000
        var (made, debts) = (0, 0)
        while now < end {
            made += 1
            let usedUp = often.consume(version(1 << 20), at: now)
            // The recording of calls is not affected.
            #expect(usedUp.events == nil)
            guard let rest = usedUp.values else {
                now += 50_000_000
                continue
            }
            debts += 1
            now += rest
            often.settle()
            // The next request starts with the whole value.
            often.charge(bytes: 1 << 20)
        }
        // About one per second, of 200.
        #expect((5...25).contains(made) && debts > 3 && often.pauses == 0, "\(made)")
        // Versions with other subscribers are made for these.
        for time in 1...200 as ClosedRange<UInt64> {
            let usedUp = observed.consume(version(0), at: time * 50_000_000)
            #expect(usedUp.events == nil && usedUp.values == nil)
        }
    }

    @Test("an overloaded server reports that its recording is incomplete, and records later events")
    func pauses() async throws {
        try await InspectorRig.with { client, server, _ async throws in
            // A limit so low that even a slow machine exceeds it.
            let recorder = InspectorRecorder(server.view, budget: RecorderRateLimiter(60))
            func look(_ name: String) async throws -> InspectedValue {
                let look = try ActorDetailQuery(name, InspectorQuery("versions=200"))
                return try InspectedValue(try #require(try await server.view.inspectedActor(look, recorder)))
            }
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await look("shelf")
            let isPaused = try await eventually {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<50 { group.addTask { _ = try await shelf.put("") } }
                    try await group.waitForAll()
                }
                return try await InspectedValue(recorder.calls(CallListQuery(InspectorQuery("limit=1"))))["pauses"]
                    .count ?? 0
                    > 0
            }
            #expect(isPaused)
            let isNoted = try await eventually {
                _ = try await shelf.putLater("later")
                let calls = try await look("shelf")["calls"].list
                return calls.first?["method"].text == "putLater(_:)"
            }
            #expect(isNoted)
            let versions = try await look("shelf")["recorded"]["versions"].list
            #expect(versions.contains { $0["partial"].flag == true })
            let all = try await InspectedValue(recorder.calls(CallListQuery(InspectorQuery("limit=2000"))))
            #expect(all["retained"].count ?? 0 < 2_000)
            recorder.stop()
        }
    }
}

@Trebuchet
distributed actor Safe {
    @StreamedState var times: Int = 0

    distributed func put(_ what: String, _ times: Int) { self.times = times == 2 ? 2 : self.times }
    @Redacted distributed func open(with code: String) {}
    @Redacted distributed func fail(with code: String) throws { throw Vault.WrongCode(given: code) }
    @Redacted distributed func openLater(with code: String) async { await Task.yield() }
}

@Trebuchet
distributed actor Closed {
    @StreamedState var things: [String] = []

    distributed func put(_ thing: String) { things.append(thing) }
}
