import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting

/// The events that a server sends to its event handlers.
@Suite(.timeLimit(.minutes(5))) struct ServerEventTests {
    private func withShelf(
        _ listener: RecordingEventHandler, access: AccessPolicy = .open, journal: Journal = Journal(),
        store: (any StateStore)? = nil,
        _ body: (Shelf, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(access: access, store: store) { server in
            server.addEventHandler(listener)
            await server.expose(Shelf(journal: journal, actorSystem: server.actorSystem), as: "shelf")
        } body: { client, server async throws in
            try await body(client.resolve(Shelf.self, id: "shelf"), client, server)
        }
    }

    @Test("events of calls have caller, actor and method, in place and in tasks, and no arguments")
    func calls() async throws {
        let listener = RecordingEventHandler(.calls)
        try await withShelf(listener) { shelf, client, _ async throws in
            #expect(try await shelf.put("secret one") == 1)
            #expect(try await shelf.putLater("secret two") == 2)
            await #expect(throws: TrebuchetError.self) { try await shelf.refuse("secret three") }
        }
        #expect(listener.calls.map(\.method) == ["put(_:)", "putLater(_:)", "refuse(_:)"])
        #expect(Set(listener.calls.map(\.number)).count == 3)
        #expect(listener.calls.allSatisfy { $0.actor == "shelf" && $0.type == "ObservabilityTests.Shelf" })
        #expect(Set(listener.calls.map(\.peer.connection)).count == 1)
        let errors = listener.events.compactMap { event -> TrebuchetError.Code?? in
            if case .callEnded(_, let duration, let error) = event, duration > .zero { .some(error) } else { nil }
        }
        #expect(errors == [nil, nil, .application])
        #expect(!"\(listener.events)".contains("secret"))
    }

    @Test("the event of a refused call has the reason")
    func refused() async throws {
        let listener = RecordingEventHandler(.calls)
        try await withTestServer(access: AccessPolicy(authorize: { _, _, target in target != "put(_:)" })) { server in
            server.addEventHandler(listener)
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
        } body: { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            await #expect(throws: TrebuchetError.self) { try await shelf.put("a") }
            let nobody = try client.resolve(Shelf.self, id: "nobody")
            await #expect(throws: TrebuchetError.self) { try await nobody.put("a") }
        }
        let refusals = listener.events.compactMap { event -> String? in
            guard case .callRejected(_, let actor, let target, let error, _) = event else { return nil }
            return "\(actor) \(target) \(error)"
        }
        #expect(refusals == ["shelf put(_:) unauthenticated", "nobody put(_:) unauthenticated"])
        #expect(listener.calls.isEmpty)
    }

    @Test(
        "each call that changed an observed state is listed in exactly one version, in place, in a task or concurrent"
    )
    func causes() async throws {
        let listener = RecordingEventHandler([.calls, .versions, .streams])
        try await withShelf(listener) { shelf, _, _ async throws in
            let states = await shelf.observeBooks()
            var seen = states.makeAsyncIterator()
            #expect(await seen.next() == [])
            _ = try await shelf.put("in place")
            _ = try await shelf.putLater("in a task")
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Each change is larger than the data that a turn sends, so that some are conflated.
                for _ in 0..<40 { group.addTask { _ = try await shelf.put(String(repeating: "a", count: 20_000)) } }
                try await group.waitForAll()
            }
            while let books = await seen.next(), books.count < 42 {}
        }
        let calls = Set(listener.calls.map(\.number))
        let named = listener.versions.flatMap(\.calls)
        #expect(calls.count == 42)
        #expect(Set(named) == calls)
        #expect(named.count == calls.count, "no call is listed twice")
        #expect(listener.versions.allSatisfy { $0.stream.actor == "shelf" && $0.stream.target == "observeBooks" })
        let begun = listener.events.compactMap { event -> ServerEvent.StreamStart? in
            if case .streamStarted(_, _, let beginning) = event { beginning } else { nil }
        }
        #expect(begun == [.initial])
    }

    @Test("a version of a persisted state lists its calls as well, and writes are reported")
    func persisted() async throws {
        let listener = RecordingEventHandler([.calls, .versions, .store])
        try await withTestServer(store: MemoryStore()) { server in
            server.addEventHandler(listener)
            await server.expose(PersistedShelf(actorSystem: server.actorSystem), as: "kept")
        } body: { client, _ async throws in
            let shelf = try client.resolve(PersistedShelf.self, id: "kept")
            var seen = await shelf.observeBooks().makeAsyncIterator()
            #expect(await seen.next() == [])
            for number in 1...3 { #expect(try await shelf.put("\(number)") == number) }
            while let books = await seen.next(), books.count < 3 {}
        }
        #expect(listener.versions.flatMap(\.calls) == listener.calls.map(\.number))
        #expect(listener.calls.count == 3)
        let writes = listener.events.compactMap { event -> String?? in
            if case .storeWriteCompleted(_, _, let error) = event { .some(error) } else { nil }
        }
        #expect(!writes.isEmpty && writes.allSatisfy { $0 == nil })
    }

    @Test("connections are reported from start to end, with sign-ins in between")
    func connections() async throws {
        let listener = RecordingEventHandler(.connections)
        var access = AccessPolicy.open
        access.identifiesCallers = true
        try await withShelf(listener, access: access) { shelf, _, server async throws in
            try await shelf.signIn(as: "ada")
            try await shelf.signIn(as: nil)
        }
        let descriptions = listener.events.map { event -> String in
            switch event {
            case .connectionOpened(let peer): "opened \(peer.connection) \(peer.address?.host ?? "-")"
            case .authenticated(let peer): "\(peer.connection) is \(peer.principal ?? "nobody")"
            case .connectionClosed(let peer, let duration, _): "closed \(peer.connection) \(duration > .zero)"
            default: "\(event)"
            }
        }
        guard case .connectionOpened(let peer)? = listener.events.first else {
            Issue.record("\(descriptions)")
            return
        }
        let number = peer.connection
        #expect(
            descriptions == [
                "opened \(number) 127.0.0.1", "\(number) is ada", "\(number) is nobody", "closed \(number) true",
            ])
    }

    @Test("a server reports the start and the end of its shutdown, and then nothing more")
    func end() async throws {
        let listener = RecordingEventHandler(.server)
        let server = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        server.addEventHandler(listener)
        try await server.start()
        await server.shutdown()
        await server.shutdown()
        let descriptions = listener.events.map { event -> String in
            switch event {
            case .serverDraining: "draining"
            case .serverStopped: "ended"
            default: "\(event)"
            }
        }
        #expect(descriptions == ["draining", "ended"])
    }

    @Test("a reached limit is reported with the name of its setting, and counted")
    func limits() async throws {
        let listener = RecordingEventHandler(.limits)
        var limits = ServerLimits()
        limits.calls.rate.perMethod[RatedMethod("put(_:)", of: Shelf.self)] = RateLimit(callsPerSecond: 0.01, burst: 1)
        try await withTestServer(limits: limits) { server in
            server.addEventHandler(listener)
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
        } body: { client, server async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("a")
            for _ in 0..<2 { await #expect(throws: TrebuchetError.self) { try await shelf.put("b") } }
            var metrics = ""
            // Metrics throw while other tests of this process block a reactor.
            _ = await eventually {
                metrics = (try? await server.prometheusMetrics()) ?? ""
                return !metrics.isEmpty
            }
            #expect(metrics.contains("\ntrebuchet_refusals_total{limit=\"calls.rate.perMethod\"} 2\n"))
            #expect(metrics.contains("\ntrebuchet_errors_total{code=\"rateLimited\"} 2\n"))
        }
        let descriptions = listener.events.map { event -> String in
            if case .limitReached(let setting, let peer) = event { "\(setting) \(peer != nil)" } else { "\(event)" }
        }
        #expect(descriptions == ["calls.rate.perMethod true", "calls.rate.perMethod true"])
    }
}

/// A persisted `Shelf`.
@Trebuchet
distributed actor PersistedShelf {
    @StreamedState(persisted: true) var books: [String] = []

    distributed func put(_ book: String) -> Int {
        books.append(book)
        return books.count
    }
}
