import Testing
import Trebuchet

/// Observation of an actor in the same process.
@Suite(.timeLimit(.minutes(5))) struct LocalObservationTests {
    @Test("an observer without a client receives the current value first, then newer ones")
    func values() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let list = TodoList(actorSystem: server.actorSystem)
        let states = await list.observeState()
        var iterator = states.makeAsyncIterator()
        #expect(await iterator.next()?.items == [])
        for count in 1...20 {
            #expect(try await list.add(title: "x") == count)
            #expect(await iterator.next()?.items.count == count)
        }
        #expect(states.outcome == nil)
    }

    @Test("a burst delivers increasing versions without repeats, and always the last one")
    func burst() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let list = TodoList(actorSystem: server.actorSystem)
        let reader = Task {
            var counts: [Int] = []
            for await state in await list.observeState() {
                counts.append(state.items.count)
                if state.items.count == 500 { break }
            }
            return counts
        }
        for _ in 0..<500 { _ = try await list.add(title: "x") }
        let counts = await reader.value
        #expect(counts.last == 500)
        #expect(zip(counts, counts.dropFirst()).allSatisfy(<))
    }

    @Test("an observer does not retain the actor, and is notified of its end")
    func actorEnd() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        var list: TodoList? = TodoList(actorSystem: server.actorSystem)
        let states = await list!.observeState()
        var iterator = states.makeAsyncIterator()
        #expect(await iterator.next()?.items == [])
        list = nil
        #expect(await iterator.next() == nil)
        guard case .failed(let error) = states.outcome else {
            Issue.record("the stream ended with \(String(describing: states.outcome))")
            return
        }
        #expect(error.code == .actorNotFound)
    }

    @Test("an actor on the global pool is observed the same way")
    func concurrent() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let list = ConcurrentList(actorSystem: server.actorSystem)
        var iterator = await list.observeState().makeAsyncIterator()
        #expect(await iterator.next()?.items == [])
        _ = try await list.add(title: "x")
        #expect(await iterator.next()?.items == ["x"])
    }
}
