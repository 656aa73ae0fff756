import Foundation
import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Players, each observed by a different subscriber.
@Trebuchet
private distributed actor Arena {
    struct Player: Codable, Sendable, Equatable {
        var name: String
        var score = 0
    }
    struct State: Codable, Sendable, Equatable {
        var round = 0
        var players: [String: Player] = [:]
    }

    @StreamedState var state: State = State()

    distributed func join(_ id: String) { state.players[id] = Player(name: id) }
    distributed func leave(_ id: String) { state.players[id] = nil }
    distributed func score(_ id: String) { state.players[id]?.score += 1 }
    distributed func nextRound() -> Int {
        state.round += 1
        return state.round
    }
}

/// `Arena` on the global pool.
@Trebuchet(executor: .concurrent)
private distributed actor SlowArena {
    @StreamedState var scores: [String: Int] = [:]

    distributed func set(_ id: String, to score: Int) { scores[id] = score }
}

/// Its state cannot always be encoded.
@Trebuchet
private distributed actor Gauge {
    @StreamedState var reading: Double = 1

    distributed func read(_ value: Double) { reading = value == 0 ? .nan : value }
}

@Suite(.timeLimit(.minutes(5))) struct FilterTests {
    private func withArena(
        _ link: TestLink, reactors: Int = 2,
        _ body: (Arena, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, reactors: reactors) { server in
            await server.expose(Arena(actorSystem: server.actorSystem), as: "arena")
        } body: { client, server in
            try await body(client.resolve(Arena.self, id: "arena"), client, server)
        }
    }

    @Test("a path sends only its part, when that has changed", arguments: TestLink.allCases)
    func path(link: TestLink) async throws {
        try await withArena(link) { arena, _, _ in
            try await arena.join("7")
            var values = await arena.observeState(filter: .path("/players/7"), as: Arena.Player.self)
                .makeAsyncIterator()
            #expect(await values.next() == Arena.Player(name: "7"))
            try await arena.join("8")
            try await arena.score("8")
            try await arena.score("7")
            #expect(await values.next()?.score == 1)
        }
    }

    @Test("a missing part is nil to an optional reader, and no value to another", arguments: TestLink.allCases)
    func missing(link: TestLink) async throws {
        try await withArena(link) { arena, _, _ in
            let filter = StreamFilter.path("/players/7/score")
            var optional = await arena.observeState(filter: filter, as: Int?.self).makeAsyncIterator()
            var plain = await arena.observeState(filter: filter, as: Int.self).makeAsyncIterator()
            #expect(await optional.next() == .some(nil))
            try await arena.join("7")
            #expect(await optional.next() == 0)
            #expect(await plain.next() == 0)
            try await arena.leave("7")
            #expect(await optional.next() == .some(nil))
            try await arena.join("7")
            try await arena.score("7")
            #expect(await plain.next() == 1)
        }
    }

    @Test("a condition admits only the versions for which it holds", arguments: TestLink.allCases)
    func condition(link: TestLink) async throws {
        try await withArena(link) { arena, _, _ in
            var states = await arena.observeState(filter: .where("/round", .greater(than: 2))).makeAsyncIterator()
            for _ in 0..<3 { _ = try await arena.nextRound() }
            #expect(await states.next()?.round == 3)
        }
    }

    @Test("a new reader of a shared condition gets no value that no longer satisfies it", arguments: TestLink.allCases)
    func staleValue(link: TestLink) async throws {
        for reactors in [1, 2] {
            try await withArena(link, reactors: reactors) { arena, _, server in
                try await arena.join("7")
                let filter = StreamFilter.where("/players/7/score", .atLeast(2))
                var first = await arena.observeState(filter: filter).makeAsyncIterator()
                for _ in 0..<3 { try await arena.score("7") }
                while let state = await first.next(), state.players["7"]?.score != 3 {}
                // The condition no longer holds.
                try await arena.join("7")
                var late: [StateStream<Arena.State>.Iterator] = []
                for _ in 0..<6 { late.append(await arena.observeState(filter: filter).makeAsyncIterator()) }
                #expect(await eventually { await server.subscriberCount(of: "arena", "observeState") == 7 })
                for _ in 0..<2 { try await arena.score("7") }
                for index in late.indices { #expect(await late[index].next()?.players["7"]?.score == 2) }
                #expect(await first.next()?.players["7"]?.score == 2)
                // Where it holds, the current value arrives at once.
                var last = await arena.observeState(filter: filter).makeAsyncIterator()
                #expect(await last.next()?.players["7"]?.score == 2)
            }
        }
    }

    @Test("one filter is evaluated once for all its readers, on all reactors, and is removed with the last")
    func shared() async throws {
        try await withArena(.webSocket) { arena, client, server in
            try await arena.join("7")
            var clients: [TrebuchetClient] = []
            var readers: [StateStream<Int>.Iterator] = []
            let address = try #require(server.address)
            for _ in 0..<8 {
                let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
                try await client.connect()
                clients.append(client)
                for _ in 0..<4 {
                    let arena = try client.resolve(Arena.self, id: "arena")
                    let stream = await arena.observeState(filter: .path("/players/7/score").distinct(), as: Int.self)
                    readers.append(stream.makeAsyncIterator())
                }
            }
            for index in readers.indices { #expect(await readers[index].next() == 0) }
            let before = await server.encodeCount(of: "arena", "observeState")
            #expect(await server.filterCount(of: "arena", "observeState") == 1)
            for score in 1...10 {
                try await arena.score("7")
                for index in readers.indices { #expect(await readers[index].next() == score) }
            }
            #expect(await server.encodeCount(of: "arena", "observeState") == before + 10)
            readers = []
            #expect(await eventually { await server.filterCount(of: "arena", "observeState") == 0 })
            #expect(await server.subscriberCount(of: "arena", "observeState") == 0)
            try await arena.score("7")
            #expect(await server.encodeCount(of: "arena", "observeState") == before + 10)
            for client in clients { await client.close() }
        }
    }

    @Test("at most one value arrives in an interval, and the last is never lost", arguments: TestLink.allCases)
    func interval(link: TestLink) async throws {
        try await withArena(link) { arena, _, _ in
            try await arena.join("7")
            let filter = StreamFilter.path("/players/7/score").atMost(every: .milliseconds(50))
            var scores = await arena.observeState(filter: filter, as: Int.self).makeAsyncIterator()
            #expect(await scores.next() == 0)
            let begun = ContinuousClock.now
            for _ in 0..<500 { try await arena.score("7") }
            var seen = 0
            var last = 0
            while last < 500, let score = await scores.next() {
                #expect(score > last)
                last = score
                seen += 1
            }
            let elapsed = ContinuousClock.now - begun
            #expect(last == 500)
            #expect(seen <= Int(elapsed / .milliseconds(50)) + 1, "\(seen) values in \(elapsed)")
        }
    }

    @Test("a filtered stream resumes after a cut, without an equal value")
    func reconnection() async throws {
        try await withArena(.webSocket) { arena, _, server in
            try await arena.join("7")
            let link = try FaultyLink(to: #require(server.address), seed: 1, faults: .none)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            let far = try client.resolve(Arena.self, id: "arena")
            var scores = await far.observeState(filter: .path("/players/7/score"), as: Int.self).makeAsyncIterator()
            #expect(await scores.next() == 0)
            for score in 1...5 {
                await link.disconnectAll(.reset)
                // Another part changes meanwhile, so the versions differ.
                try await arena.score("8")
                _ = try await arena.nextRound()
                for await state in client.connectionState.stream where state == .connected { break }
                #expect(try await far.nextRound() > 0)
                try await arena.score("7")
                #expect(await scores.next() == score)
            }
            await client.close()
            await link.close()
        }
    }

    @Test("an invalid filter is rejected with its reason", arguments: TestLink.allCases)
    func refused(link: TestLink) async throws {
        try await withArena(link) { arena, _, server in
            let local = try Arena.resolve(id: TrebuchetActorID("arena"), using: server.actorSystem)
            for arena in [arena, local] {
                let stream = await arena.observeState(filter: .path("players"), as: Int.self)
                for await _ in stream { Issue.record("a value arrived through an invalid filter") }
                guard case .failed(let error) = stream.outcome else {
                    Issue.record("the stream ended without an error")
                    continue
                }
                #expect(error.code == .invalidArguments && error.message.contains("'players' is not a JSON Pointer"))
            }
        }
    }

    @Test("the number of different filters of one state is bounded")
    func tooMany() async throws {
        var limits = ServerLimits()
        limits.streams.perConnection = 2_000
        limits.filters.perConnection = 2_000
        limits.filters.perState = 1_600
        try await withTestServer(link: .local, limits: limits) { server in
            await server.expose(Arena(actorSystem: server.actorSystem), as: "arena")
        } body: { client, _ in
            let arena = try client.resolve(Arena.self, id: "arena")
            var streams: [StateStream<Int?>] = []
            for number in 0..<100 {
                streams.append(await arena.observeState(filter: .path("/players/\(number)/score"), as: Int?.self))
            }
            let more = await arena.observeState(filter: .path("/round"), as: Int.self)
            for await _ in more { Issue.record("a value arrived through a filter over the limit") }
            #expect(
                more.outcome
                    == .failed(
                        TrebuchetError(
                            .rateLimited,
                            "quota exceeded: this connection has 100 of the 1600 filters of this state "
                                + "(ServerLimits.filters.perState)")))
            // An existing filter is still available.
            var last = await arena.observeState(filter: .path("/players/99/score"), as: Int?.self).makeAsyncIterator()
            #expect(await last.next() == .some(nil))
            #expect(streams.count == 100)
        }
    }

    @Test("a part of another type than the reader's gives no value, and the stream's error names the part")
    func wrongType() async throws {
        try await withArena(.webSocket) { arena, _, _ in
            let stream = await arena.observeState(filter: .path("/round"), as: String.self)
            let reader = Task { for await _ in stream { Issue.record("a number was decoded as text") } }
            #expect(await eventually { stream.decodingError != nil })
            let error = stream.decodingError?.message ?? ""
            #expect(error.contains("value '/round' of state 'observeState' of actor"), "\(error)")
            #expect(error.contains("cannot be decoded as String"), "\(error)")
            #expect(stream.outcome == nil)
            reader.cancel()
        }
    }

    @Test("in the same process a filter works without a client, and its readers end with the actor")
    func local() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        var arena: Arena? = Arena(actorSystem: server.actorSystem)
        let filter = StreamFilter.path("/round").where("/round", .notEqual(1))
        let begun = await arena?.observeState(filter: filter, as: Int.self)
        let stream = try #require(begun)
        var rounds = stream.makeAsyncIterator()
        #expect(await rounds.next() == 0)
        for _ in 0..<2 { _ = try await arena?.nextRound() }
        #expect(await rounds.next() == 2)
        arena = nil
        #expect(await rounds.next() == nil)
        guard case .failed(let error) = stream.outcome else {
            Issue.record("the stream ended without an error")
            return
        }
        #expect(error.code == .actorNotFound)
        await server.shutdown(drain: .zero)
    }

    @Test("an actor on the global pool is filtered too")
    func concurrent() async throws {
        try await withTestServer { server in
            await server.expose(SlowArena(actorSystem: server.actorSystem), as: "arena")
        } body: { client, _ in
            let arena = try client.resolve(SlowArena.self, id: "arena")
            let filter = StreamFilter.path("/a").atMost(every: .milliseconds(10))
            var scores = await arena.observeScores(filter: filter, as: Int.self).makeAsyncIterator()
            for score in 1...200 { try await arena.set("a", to: score) }
            while let score = await scores.next(), score != 200 {}
        }
    }

    @Test("a client of version 2 can use the filters of version 2")
    func legacy() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(Arena(actorSystem: server.actorSystem), as: "arena")
        let peer = try await RawPeer.connect(server.start(), subprotocols: [])
        peer.send(
            #"{"type":"invocation","payload":{"callID":"c1","actorID":{"id":"arena"},"targetIdentifier":"observeState","#
                + #""protocolVersion":2,"streamFilter":{"type":"predefined","name":"threshold","#
                + #""parameters":{"field":"round","value":"1"}}}}"#)
        #expect(try #require(await peer.nextText()).contains("streamStart"))
        let arena = try Arena.resolve(id: TrebuchetActorID("arena"), using: server.actorSystem)
        for _ in 0..<2 { _ = try await arena.nextRound() }
        let data = try #require(await peer.nextText())
        let value = try #require(data.firstMatch(of: /"data":"([^"]+)"/)?.1)
        let text = String(decoding: try #require(Data(base64Encoded: String(value))), as: UTF8.self)
        #expect(text.contains(#""round":2"#), "\(text)")
        peer.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a state that cannot be encoded is reported as such through a filter, not as a missing actor")
    func unencodable() async throws {
        try await withTestServer { server in
            await server.expose(Gauge(actorSystem: server.actorSystem), as: "gauge")
        } body: { client, server in
            let gauge = try client.resolve(Gauge.self, id: "gauge")
            let observe = #"{"type":"invocation","payload":{"callID":"o","actorID":"gauge","#
            let peer = try await RawPeer.connect(#require(server.address))
            func asked(_ more: String) async throws -> String {
                peer.send(observe + #""targetIdentifier":"observeReading"\#(more)}}"#)
                #expect(try #require(await peer.nextText()).contains("streamStart"))
                return try #require(await peer.nextText())
            }
            try await gauge.read(0)
            for filter in [
                "", #","filter":{"distinct":true}"#, #","filter":{"where":{"path":"","op":"gt","value":1}}"#,
            ] {
                let text = try await asked(filter)
                #expect(text.contains("streamError"), "\(text)")
                #expect(text.contains(#""code":"internal""#) && text.contains("state of type Double cannot be encoded"))
            }
            try await gauge.read(2)
            #expect(try await asked(#","filter":{"distinct":true}"#).contains(#""data":2"#))
            peer.close()
        }
    }
}
