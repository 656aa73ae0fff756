import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct StreamTests {
    private func withList(
        _ link: TestLink, limits: ServerLimits = ServerLimits(), options: TrebuchetClient.Options = .init(),
        _ body: (TodoList, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, limits: limits, options: options) { server in
            let list = TodoList(actorSystem: server.actorSystem)
            _ = try await list.add(title: "first")
            await server.expose(list, as: "todos")
        } body: { client, server in
            try await body(client.resolve(TodoList.self, id: "todos"), client, server)
        }
    }

    @Test("a stream starts with the current value", arguments: TestLink.allCases)
    func firstValue(link: TestLink) async throws {
        try await withList(link) { list, _, _ in
            let states = await list.observeState()
            #expect(await states.first { _ in true }?.items == ["first"])
            _ = try await list.add(title: "second")
            // Each iterator of the same stream starts with the latest value.
            #expect(await states.first { _ in true }?.items == ["first", "second"])
        }
    }

    @Test("a state may get its first value in a synchronous initializer")
    func firstValueFromInitializer() async throws {
        try await withTestServer { server in
            await server.expose(Thermometer(18.5, actorSystem: server.actorSystem), as: "hall")
        } body: { client, _ in
            let hall = try client.resolve(Thermometer.self, id: "hall")
            let degrees = await hall.observeDegrees()
            #expect(await degrees.first { _ in true } == 18.5)
            try await hall.warm(by: 2)
            #expect(await degrees.first { _ in true } == 20.5)
        }
    }

    @Test(
        "a burst of changes is delivered without older or repeated values, and always with the last one",
        arguments: TestLink.allCases)
    func burst(link: TestLink) async throws {
        try await withList(link) { list, _, _ in
            let readers = (0..<8).map { _ in
                Task {
                    var counts: [Int] = []
                    for await state in await list.observeState() {
                        counts.append(state.items.count)
                        if state.items.count == 501 { break }
                    }
                    return counts
                }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<500 {
                    group.addTask {
                        _ =
                            index.isMultiple(of: 2)
                            ? try await list.add(title: "x") : try await list.addLater(title: "x")
                    }
                }
                try await group.waitForAll()
            }
            for reader in readers {
                let counts = await reader.value
                #expect(counts.last == 501)
                #expect(zip(counts, counts.dropFirst()).allSatisfy(<))
            }
        }
    }

    @Test("a caller that observes has received its change when the response arrives", arguments: TestLink.allCases)
    func ownWrites(link: TestLink) async throws {
        try await withList(link) { list, _, _ in
            let states = await list.observeState()
            var iterator = states.makeAsyncIterator()
            #expect(await iterator.next()?.items.count == 1)
            for count in 2..<100 {
                let reported =
                    count.isMultiple(of: 2)
                    ? try await list.add(title: "x") : try await list.addLater(title: "x")
                #expect(reported == count)
                #expect(await iterator.next()?.items.count == count)
            }
        }
    }

    @Test("several changes in one call are one update")
    func coalescing() async throws {
        try await withList(.webSocket) { list, _, server in
            var iterator = await list.observeState().makeAsyncIterator()
            #expect(await iterator.next()?.items.count == 1)
            let before = await server.encodeCount(of: "todos", "observeState")
            try await list.fill(1_000)
            #expect(await iterator.next()?.items.count == 1_001)
            #expect(await server.encodeCount(of: "todos", "observeState") == before + 1)
        }
    }

    @Test("an unobserved state is not encoded")
    func lazy() async throws {
        try await withList(.webSocket) { list, _, server in
            do {
                let states = await list.observeState()
                #expect(await states.first { _ in true } != nil)
            }
            #expect(await eventually { await server.subscriberCount(of: "todos", "observeState") == 0 })
            let before = await server.encodeCount(of: "todos", "observeState")
            for _ in 0..<10 { _ = try await list.add(title: "x") }
            #expect(await server.encodeCount(of: "todos", "observeState") == before)
        }
    }

    @Test("releasing a stream ends its subscription at the server", arguments: TestLink.allCases)
    func unsubscribe(link: TestLink) async throws {
        try await withList(link) { list, _, server in
            do {
                let streams = [await list.observeState(), await list.observeState(), await list.observeState()]
                for stream in streams { #expect(await stream.first { _ in true } != nil) }
                #expect(await server.subscriberCount(of: "todos", "observeState") == 3)
                #expect(streams.allSatisfy { $0.outcome == nil })
            }
            #expect(await eventually { await server.subscriberCount(of: "todos", "observeState") == 0 })
            try await #expect(list.add(title: "x") == 2)
        }
    }

    @Test("an unread stream is released as well", arguments: TestLink.allCases)
    func unread(link: TestLink) async throws {
        try await withList(link) { list, _, server in
            for _ in 0..<100 { _ = await list.observeState() }
            // After the hundred streams on the same connection.
            _ = try await list.add(title: "x")
            #expect(await eventually { await server.subscriberCount(of: "todos", "observeState") == 0 })
        }
    }

    @Test("cancelling the reader ends its loop", arguments: TestLink.allCases)
    func cancelledReader(link: TestLink) async throws {
        try await withList(link) { list, _, server in
            let journal = Journal()
            let reader = Task {
                for await _ in await list.observeState() { journal.record("value") }
            }
            await journal.wait(for: "value")
            reader.cancel()
            await reader.value
            #expect(await eventually { await server.subscriberCount(of: "todos", "observeState") == 0 })
        }
    }

    @Test("the end of an actor ends its streams with an error", arguments: TestLink.allCases)
    func actorGone(link: TestLink) async throws {
        try await withList(link) { list, _, server in
            let states = await list.observeState()
            var iterator = states.makeAsyncIterator()
            #expect(await iterator.next() != nil)
            await server.unexpose("todos")
            #expect(await iterator.next() == nil)
            guard case .failed(let error) = states.outcome else {
                Issue.record("the stream ended with \(String(describing: states.outcome))")
                return
            }
            #expect(error.code == .actorNotFound)
        }
    }

    @Test(
        "the server's shutdown ends the streams of a client that does not reconnect, with an error",
        arguments: TestLink.allCases)
    func shutdown(link: TestLink) async throws {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        try await withList(link, options: options) { list, _, server in
            let states = await list.observeState()
            var iterator = states.makeAsyncIterator()
            #expect(await iterator.next() != nil)
            await server.shutdown(drain: .zero)
            #expect(await iterator.next() == nil)
            guard case .failed(let error) = states.outcome else {
                Issue.record("the stream ended with \(String(describing: states.outcome))")
                return
            }
            #expect(error.code == .unavailable)
        }
    }

    @Test("the throwing form of a stream throws at such an end", arguments: TestLink.allCases)
    func throwing(link: TestLink) async throws {
        try await withList(link) { list, _, server in
            let error = await #expect(throws: TrebuchetError.self) {
                for try await state in list.observeState.throwing() {
                    #expect(state.items == ["first"])
                    await server.unexpose("todos")
                }
            }
            #expect(error?.code == .actorNotFound)
        }
    }

    @Test("observing an actor that does not exist ends with actorNotFound", arguments: TestLink.allCases)
    func unknownActor(link: TestLink) async throws {
        try await withList(link) { _, client, _ in
            let nobody = try client.resolve(TodoList.self, id: "nobody")
            let states = await nobody.observeState()
            #expect(await states.first { _ in true } == nil)
            guard case .failed(let error) = states.outcome else {
                Issue.record("the stream ended with \(String(describing: states.outcome))")
                return
            }
            #expect(error.code == .actorNotFound)
            #expect(error.message.contains("nobody"))
            await #expect(throws: TrebuchetError.self) {
                for try await _ in nobody.observeState.throwing() {}
            }
        }
    }

    @Test("streams over the limit of a connection are refused; the others continue", arguments: TestLink.allCases)
    func limit(link: TestLink) async throws {
        var limits = ServerLimits()
        limits.streams.perConnection = 2
        try await withList(link, limits: limits) { list, _, _ in
            let streams = [await list.observeState(), await list.observeState()]
            for stream in streams { #expect(await stream.first { _ in true } != nil) }
            let third = await list.observeState()
            #expect(await third.first { _ in true } == nil)
            guard case .failed(let error) = third.outcome else {
                Issue.record("the stream ended with \(String(describing: third.outcome))")
                return
            }
            #expect(error.code == .rateLimited)
            _ = try await list.add(title: "x")
            for stream in streams { #expect(await stream.first { _ in true }?.items.count == 2) }
        }
    }

    @Test("a new actor exposed under a name is independent: streams of the previous one continue")
    func exposedAgain() async throws {
        try await withList(.webSocket) { list, _, server in
            let old = try server.actorSystem.resolve(id: TrebuchetActorID("todos"), as: TodoList.self)
            var iterator = await list.observeState().makeAsyncIterator()
            #expect(await iterator.next()?.items == ["first"])
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
            #expect(try await list.add(title: "new") == 1)
            #expect(try await old?.add(title: "old") == 2)
            #expect(await iterator.next()?.items == ["first", "old"])
        }
    }
}
