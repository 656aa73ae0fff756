import StateMachines
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// A state machine in a distributed actor.
@Suite(.timeLimit(.minutes(5))) struct HostedMachineTests {
    /// Returns when the stream has sent a state that satisfies the condition.
    private func wait(
        _ states: inout StateStream<EntryRequestMachine.State>.AsyncIterator,
        _ condition: (EntryRequestMachine.State) -> Bool
    ) async throws -> EntryRequestMachine.State {
        while let state = await states.next() {
            if condition(state) { return state }
        }
        throw TrebuchetError(.unavailable, "the stream ended")
    }

    @Test("a client sends inputs and sees every state that they and the effects cause", arguments: TestLink.allCases)
    func remoteMachine(link: TestLink) async throws {
        let journal = Journal()
        let keeper = EntryDecisionKey(lets: { name in
            journal.record("\(name) asks")
            await journal.wait(for: "\(name) is answered")
            return name != "Mallory"
        })
        try await withTestServer(link: link) { server in
            await server.expose(EntryRequestActor(keeper: keeper, actorSystem: server.actorSystem), as: "door")
        } body: { client, _ in
            let door = try client.resolve(EntryRequestActor.self, id: "door")
            var states = await door.observeState().makeAsyncIterator()
            #expect(await states.next() == EntryRequestMachine.State())

            try await door.send(.ring(name: "Blob"))
            #expect(try await wait(&states) { $0.phase == .asking }.visitors == [])
            await journal.wait(for: "Blob asks")
            // A request is pending: a second one is ignored.
            try await door.send(.ring(name: "Eve"))
            journal.record("Blob is answered")
            #expect(try await wait(&states) { $0.phase == .open }.visitors == ["Blob"])

            try await door.send(.push)
            #expect(try await wait(&states) { $0.phase == .closed }.visitors == ["Blob"])
            try await door.send(.ring(name: "Mallory"))
            #expect(try await wait(&states) { $0.phase == .asking }.visitors == ["Blob"])
            journal.record("Mallory is answered")
            #expect(try await wait(&states) { $0.phase == .closed }.visitors == ["Blob"])
        }
        #expect(!journal.entries.contains("Eve asks"))
    }

    @Test("the effects of a machine reach all clients, and end with its actor")
    func longEffect() async throws {
        let journal = Journal()
        let watchers = Mutex<[@Sendable () -> Void]>([])
        try await withTestServer { server in
            let keeper = EntryDecisionKey(
                lets: { _ in true },
                watch: { watcher in
                    watchers.withLock { $0.append(watcher) }
                    journal.record("watching")
                },
                unwatch: { journal.record("unwatched") })
            await server.expose(EntryRequestActor(keeper: keeper, actorSystem: server.actorSystem), as: "door")
        } body: { client, server in
            let door = try client.resolve(EntryRequestActor.self, id: "door")
            let other = TrebuchetClient(transport: .local(server))
            try await other.connect()
            var states = await (try other.resolve(EntryRequestActor.self, id: "door")).observeState()
                .makeAsyncIterator()
            try await door.send(.watch)
            try await door.send(.ring(name: "Blob"))
            _ = try await wait(&states) { $0.phase == .open }
            await journal.wait(for: "watching")
            for watcher in watchers.withLock({ $0 }) { watcher() }
            #expect(try await wait(&states) { $0.phase == .closed }.visitors == ["Blob"])
            #expect(!journal.entries.contains("unwatched"))
            await other.close()
            await server.unexpose("door")
        }
        await journal.wait(for: "unwatched")
    }

    @Test("the pure machine is a table, in any host")
    func pureMachine() {
        let (asking, effect) = EntryRequestMachine.reduceInput(.init(), .ring(name: "Blob"))
        #expect(asking?.phase == .asking)
        #expect(effect == .merge(.chime, .ask(name: "Blob")))
        #expect(EntryRequestMachine.reduceIOResult(.init(phase: .asking), .refused).0?.phase == .closed)
        #expect(EntryRequestMachine.reduceInput(.init(phase: .asking), .ring(name: "Eve")).0 == nil)
    }
}
