import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct IdleActorTrackerTests {
    private static let second: UInt64 = 1_000_000_000

    private func record(_ system: TrebuchetActorSystem, _ name: String) -> ActorRecord {
        LocalActors().record(of: Calculator(actorSystem: system), name: name, holding: true, in: system)
    }

    @Test("an actor is idle when it was unused for its idle time since the last check")
    func rest() {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let record = record(server.actorSystem, "a")
        var watch = IdleActorTracker()
        watch.trackActor(record, IdlePolicy(time: .seconds(10), discards: false), at: 0)
        func removeIdle(at seconds: UInt64) -> [String] {
            watch.removeIdle(of: 5, at: seconds * Self.second).map(\.name)
        }
        #expect(removeIdle(at: 100) == [], "it was activated, and so used, since the last check")
        #expect(removeIdle(at: 109) == [])
        record.actorInstance.didRunInPlace()
        #expect(removeIdle(at: 111) == [])
        #expect(removeIdle(at: 120) == [])
        #expect(record.actorInstance.enter())
        #expect(removeIdle(at: 200) == [], "a call is in flight")
        #expect(removeIdle(at: 300) == [])
        record.actorInstance.removeUser()
        #expect(removeIdle(at: 309) == [])
        #expect(removeIdle(at: 311) == ["a"])
        #expect(watch.count == 0)
    }

    @Test("an actor is tracked once, by the reactor that requested it first", .timeLimit(.minutes(5)))
    func once() async throws {
        try await withTestServer(reactors: 2) { server in
            let system = server.actorSystem
            server.expose(TodoList.self, as: "lists/*", idle: .seconds(3_600)) { _ in
                await Task.yield()
                return TodoList(actorSystem: system)
            }
        } body: { client, server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        let other = TrebuchetClient(transport: .local(server))
                        try await other.connect()
                        _ = try await other.resolve(TodoList.self, id: "lists/7").add(title: "a")
                        await other.close()
                    }
                }
                try await group.waitForAll()
            }
            // One reactor learns it from another: earlier messages are processed first.
            for shard in server.shards { await shard.reactor.perform {} }
            var count = 0
            for shard in server.shards { count += await shard.reactor.perform { shard.idleWatch.count } }
            #expect(count == 1)
        }
    }

    @Test("each pass checks some actors, and all of them in rotation")
    func turns() {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        var watch = IdleActorTracker()
        let names = (0..<10).map(String.init)
        for name in names {
            let record = record(server.actorSystem, name)
            _ = record.actorInstance.consumeUseFlag()
            watch.trackActor(record, IdlePolicy(time: .seconds(10), discards: false), at: 0)
        }
        var gone: Set<String> = []
        for _ in 0..<4 { gone.formUnion(watch.removeIdle(of: 3, at: 11 * Self.second).map(\.name)) }
        #expect(gone == Set(names))
    }

    @Test("a closed actor is not entered, and an actor in use is not closed")
    func closing() {
        let instance = ActorInstance()
        #expect(instance.enter())
        #expect(!instance.close())
        instance.removeUser()
        #expect(instance.close())
        #expect(!instance.enter())
        #expect(instance.isDeactivated)
        #expect(!instance.close())
    }
}
