import Observation
import TestSupport
import Testing
import Trebuchet

@Trebuchet
private distributed actor Tote {
    @StreamedState var total: Int = 0
    @StreamedEvents var marks: Int

    distributed func add(_ number: Int) -> Int {
        total += number
        $marks.send(number)
        return total
    }
}

/// Streams that an operator ends.
@Suite(.timeLimit(.minutes(5))) @MainActor struct OperatorEndedStreamTests {
    private func withTote(_ body: (TrebuchetServer, TrebuchetClient, Tote) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let tote = Tote(actorSystem: server.actorSystem)
        await server.expose(tote, as: "tote")
        let address = try await server.start()
        let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
        try await client.connect()
        try await body(server, client, tote)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the streams of clients end with the operator's error, and those of the server's own readers continue")
    func ended() async throws {
        try await withTote { (server, client, tote) async throws in
            let remote = try client.resolve(Tote.self, id: "tote")
            let states: [StateStream<Int>] = [
                await remote.observeTotal(), await remote.observeTotal(filter: .distinct()),
            ]
            var readers = states.map { $0.makeAsyncIterator() }
            for index in readers.indices {
                let first = await readers[index].next(isolation: #isolation)
                #expect(first == 0)
            }
            var own = await tote.observeTotal().makeAsyncIterator()
            var ownFiltered = await tote.observeTotal(filter: .distinct()).makeAsyncIterator()
            #expect(await own.next(isolation: #isolation) == 0)
            #expect(await ownFiltered.next(isolation: #isolation) == 0)
            let marks = await remote.observeMarks()
            // The server has started them.
            #expect(await eventually { marks.bookmark != nil })
            var events = marks.makeAsyncIterator()

            let reason = TrebuchetError(.unavailable, "maintenance until 14:00", retryAfter: .seconds(600))
            #expect(try await server.endStreams(of: "tote", with: reason))
            for index in readers.indices {
                while await readers[index].next(isolation: #isolation) != nil {}
                #expect(states[index].outcome == .failed(reason))
            }
            do {
                while try await events.next(isolation: #isolation) != nil {}
                Issue.record("the events have ended without an error")
            } catch {
                #expect(error as? TrebuchetError == reason)
            }

            let total = try await remote.add(1)
            while let value = await own.next(isolation: #isolation), value < total {}
            while let value = await ownFiltered.next(isolation: #isolation), value < total {}
            var later = await remote.observeTotal().makeAsyncIterator()
            #expect(await later.next(isolation: #isolation) == total)
            #expect(try await server.endStreams(of: "other", with: reason) == false)
        }
    }

    private func untilTrue(_ condition: @escaping @MainActor () -> Bool) async {
        for await isTrue in Observations({ condition() }) where isTrue { return }
    }

    @Test(
        "an observed state has the error, and is observed again after the delay if there is one",
        arguments: [true, false])
    func observed(isDelayed: Bool) async throws {
        try await withTote { (server, client, tote) async throws in
            @ObservedActor("tote", observe: \Tote.observeTotal, client: client) var total
            let observer = $total
            await untilTrue { observer.value == 0 }
            let error = TrebuchetError(.unavailable, "maintenance", retryAfter: isDelayed ? .seconds(5) : nil)
            try await server.endStreams(of: "tote", with: error)
            await untilTrue { observer.error == error }
            #expect(observer.value == 0 && !observer.isConnecting)
            _ = try await tote.add(1)
            if !isDelayed { observer.retry() }
            await untilTrue { observer.value == 1 && observer.error == nil }
        }
    }
}
