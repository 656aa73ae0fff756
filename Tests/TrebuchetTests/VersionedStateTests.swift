import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Persisted states that an earlier program version wrote with other types.
@Suite(.timeLimit(.minutes(5))) struct VersionedStateTests {
    let store = GatedStore()

    /// Runs a server with one version of the program.
    private func with<Chores: TrebuchetActor, Result>(
        _ make: @escaping @Sendable (TrebuchetActorSystem) -> Chores, showsErrorText: Bool = true,
        _ body: (Chores) async throws -> Result
    ) async throws -> Result {
        try await withTestServer(store: store, showsErrorText: showsErrorText) { server in
            await server.expose(make(server.actorSystem), as: "chores")
        } body: { (client, _) async throws in
            try await body(client.resolve(Chores.self, id: "chores"))
        }
    }

    private func writeFirst() async throws {
        try await with(FirstVersion.Chores.init(actorSystem:)) { (chores) async throws in
            try await chores.add("sweep")
            try await chores.add("cook")
            try await chores.forget("late")
        }
    }

    private func stored() async throws -> JSONValue {
        try JSONValue(text: try #require(await store.text("chores.state")))
    }

    @Test("each version of an actor reads the state of the version before, by initial values and by migration")
    func versions() async throws {
        try await writeFirst()
        try await with(SecondVersion.Chores.init(actorSystem:)) { (chores) async throws in
            let state = try await chores.read()
            #expect(state.chores.map(\.text) == ["sweep", "cook"])
            #expect(state.owner == "nobody")
            #expect(state.place.room == "kitchen")
            #expect(state.place.floor == 1)
            #expect(state.marks == ["done": 0], "a key removed from a dictionary does not return")
            #expect(try await stored()["owner"] == "nobody", "the published value is persisted")
            try await chores.own("Ann")
        }
        try await with(ThirdVersion.Chores.init(actorSystem:)) { (chores) async throws in
            let state = try await chores.read()
            #expect(
                state.chores == [
                    ThirdVersion.Chore(title: "sweep", priority: 3), ThirdVersion.Chore(title: "cook", priority: 3),
                ])
            #expect(state.owner == "Ann")
            #expect(state.isOpen)
            #expect(try await store.text("chores.state")?.hasPrefix("v2:{") == true)
            try await chores.add("wash")
        }
        try await with(ThirdVersion.Chores.init(actorSystem:)) { (chores) async throws in
            #expect(try await chores.read().chores.map(\.priority) == [3, 3, 1], "it is migrated once")
        }
        try await with(LaterVersion.Chores.init(actorSystem:)) { (chores) async throws in
            #expect(try await chores.read() == ["sweep", "cook", "wash"])
            #expect(try await store.text("chores.state") == #"v3:{"titles":["sweep","cook","wash"]}"#)
        }
    }

    @Test("a state of a newer program version is a clear error, and stays unchanged")
    func newer() async throws {
        let text = #"v2:{"chores":[]}"#
        try await store.put(text, "chores.state")
        try await with(SecondVersion.Chores.init(actorSystem:)) { (chores) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await chores.read() }
            #expect(error?.code == .internal)
            #expect(error?.message.contains("schema version 2 is newer than this program's version 1") == true)
            await #expect(throws: TrebuchetError.self) { try await chores.own("Bob") }
        }
        #expect(try await store.text("chores.state") == text)
    }

    @Test("members of array elements are not filled; the error names member, property and actor, with advice")
    func elements() async throws {
        try await writeFirst()
        let before = try await store.text("chores.state")
        try await with(CarelessVersion.Chores.init(actorSystem:)) { (chores) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await chores.read() }
            for part in [
                "'state' of actor 'chores'", "states/chores.state", "its member 'chores.0.title'",
                "'@StreamedState(persisted: true, version: 2, migrate: { json, from in … })'",
            ] { #expect(error?.message.contains(part) == true, "\(error?.message ?? "")") }
        }
        #expect(try await store.text("chores.state") == before)
    }

    @Test("an error of a migration fails the calls, and the persisted state stays")
    func throwing() async throws {
        try await writeFirst()
        let before = try await store.text("chores.state")
        try await with(LaterVersion.Chores.init(actorSystem:)) { (chores) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await chores.read() }
            #expect(error?.message.contains("'migrate' from version 1 to 3 failed") == true, "\(error?.message ?? "")")
        }
        #expect(try await store.text("chores.state") == before)
    }

    @Test("clients receive the number of the log line, not the persisted state")
    func undisclosed() async throws {
        try await store.put(#"{"chores":"pa55word"}"#, "chores.state")
        try await with(SecondVersion.Chores.init(actorSystem:), showsErrorText: false) { (chores) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await chores.read() }
            #expect(error?.message.contains("see the server log") == true)
            #expect(error?.message.contains("pa55word") == false)
        }
    }

    @Test("a filled or migrated state is published after it is written")
    func writtenFirst() async throws {
        try await store.put(#"{"chores":[],"marks":{},"place":{"room":"hall"}}"#, "chores.state")
        store.close()
        try await with(SecondVersion.Chores.init(actorSystem:)) { (chores) async throws in
            let isAnswered = Mutex(false)
            let call = Task {
                defer { isAnswered.withLock { $0 = true } }
                return try await chores.read().place.floor
            }
            await store.journal.wait(for: "write 1")
            #expect(!isAnswered.withLock { $0 })
            store.open()
            #expect(try await call.value == 1)
            #expect(try await stored()["place"]?["floor"] == 1)
        }
    }

    @Test("a state that decodes unchanged is not rewritten")
    func unchanged() async throws {
        let text = #"{"chores":[],"marks":{},"place":{"floor":2,"room":"hall"},"owner":"Ann","more":1}"#
        try await store.put(text, "chores.state")
        try await with(SecondVersion.Chores.init(actorSystem:)) { (chores) async throws in
            #expect(try await chores.read().owner == "Ann")
        }
        #expect(try await store.text("chores.state") == text)
        #expect(store.journal.entries == [])
    }
}
