import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The writes that a store receives for changing states.
@Suite(.timeLimit(.minutes(5))) struct PersistedLogTests {
    let store = GatedStore()

    private func withVault(_ body: (Vault, TrebuchetClient, TrebuchetServer) async throws -> Void) async throws {
        try await withTestServer(reactors: 1, store: store) { server in
            await server.expose(Vault(actorSystem: server.actorSystem), as: "vault")
        } body: { client, server in
            try await body(client.resolve(Vault.self, id: "vault"), client, server)
        }
    }

    /// The writes for one property after the first `count` writes.
    private func writes(_ property: String, since count: Int) -> [StateWrite.Operation] {
        store.writes.dropFirst(count).filter { $0.key.name == "vault.\(property)" }.map(\.operation)
    }

    /// Expects that the store has the actor's state and that another server loads it.
    private func expectPersisted(_ vault: Vault, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let (accounts, notes, steps) = try await (vault.all(), vault.allNotes(), vault.allSteps())
        let copy = MemoryStore()
        for property in ["accounts", "notes", "steps"] {
            let key = StateKey("states", "vault.\(property)")
            guard let log = try await store.readLog(key) else { continue }
            try await copy.write([.snapshot(log.snapshot, key)] + log.entries.map { .append($0, key) })
        }
        try await withTestServer(reactors: 1, store: copy) { server in
            await server.expose(Vault(actorSystem: server.actorSystem), as: "vault")
        } body: { client, _ in
            let found = try client.resolve(Vault.self, id: "vault")
            #expect(try await found.all() == accounts, sourceLocation: sourceLocation)
            #expect(try await found.allNotes() == notes, sourceLocation: sourceLocation)
            #expect(try await found.allSteps() == steps, sourceLocation: sourceLocation)
        }
    }

    @Test("a state that tracks its changes is written once as a whole and then by its changes, whoever observes it")
    func ownChanges() async throws {
        try await withVault { vault, _, _ in
            try await vault.open(1_000)
            guard case .snapshot(let snapshot)? = writes("accounts", since: 0).first else {
                Issue.record("no snapshot: \(store.writes.count)")
                return
            }
            #expect(snapshot.bytes.count > 20_000)
            var seen = store.writes.count
            try await vault.move(5, from: 3, to: 900)
            let changes = writes("accounts", since: seen)
            guard case .append(let entry)? = changes.first, changes.count == 1 else {
                Issue.record("\(changes)")
                return
            }
            #expect(entry.baseVersion == snapshot.version)
            #expect(entry.bytes.count < 200)
            var states = await vault.observeAccounts().makeAsyncIterator()
            _ = await states.next()
            seen = store.writes.count
            try await vault.add(5_000, at: 7)
            #expect(await states.next()?[id: 5_000] == Account(id: 5_000, balance: 5_000))
            guard case .append(let next)? = writes("accounts", since: seen).first else {
                Issue.record("the change was not appended")
                return
            }
            #expect(next.baseVersion == entry.version)
            #expect(next.bytes.count < 100)
            try await expectPersisted(vault)
        }
    }

    @Test("a large state is compared to find its changes; a small one is written as a whole")
    func comparedChanges() async throws {
        try await withVault { vault, _, _ in
            try await vault.note(["a", "b"])
            try await vault.change(1, to: "c")
            #expect(writes("notes", since: 0).allSatisfy { if case .snapshot = $0 { true } else { false } })
            try await vault.note((0..<500).map { "note number \($0)" })
            let seen = store.writes.count
            try await vault.change(400, to: "another")
            let changes = writes("notes", since: seen)
            guard case .append(let entry)? = changes.first, changes.count == 1 else {
                Issue.record("\(changes)")
                return
            }
            #expect(entry.bytes.count < 100)
            try await expectPersisted(vault)
        }
    }

    @Test("each version of a state with delivery `.every` is sent when it is written, and persisted")
    func every() async throws {
        try await withVault { vault, client, _ in
            var steps = await vault.observeSteps().makeAsyncIterator()
            #expect(await steps.next() == [])
            try await vault.step(3)
            for count in 1...3 { #expect(await steps.next() == Array(0..<count)) }
            store.close()
            let call = Task { try await vault.step(2) }
            await store.journal.wait(for: "write 2")
            store.open()
            try await call.value
            for count in 4...5 { #expect(await steps.next() == Array(0..<count)) }
            try await expectPersisted(vault)
        }
    }

    @Test(
        "a subscriber that arrives during a failed write receives each version from its first one",
        arguments: [0, 1, 3])
    func everyBehindFailure(more: Int) async throws {
        try await withVault { vault, client, _ in
            try await vault.step(1)
            store.close()
            let first = Task { try await vault.step(2) }
            await store.journal.wait(for: "write 2")
            let seen = Mutex<[[Int]]>([])
            let observation = Task.immediate {
                for await steps in await vault.observeSteps() { seen.withLock { $0.append(steps) } }
            }
            defer { observation.cancel() }
            // Each response implies that earlier requests were processed.
            for _ in 0..<3 {
                await #expect(throws: TrebuchetError.self) {
                    try await client.resolve(Vault.self, id: "nobody").allNotes()
                }
            }
            store.failWrites(StateStoreError(.full, "the disk is full"))
            store.open()
            await #expect(throws: TrebuchetError.self) { try await first.value }
            store.failWrites(nil)
            try await vault.step(1 + more)
            #expect(await eventually { seen.withLock { $0.last?.count } == 4 + more })
            let counts = seen.withLock { $0.map(\.count) }
            #expect(counts == Array((counts.first ?? 0)...(4 + more)), "\(counts)")
            try await expectPersisted(vault)
        }
    }

    @Test("when the changes outweigh the value, a snapshot is written in slices and replaces them")
    func slices() async throws {
        try await withVault { vault, _, _ in
            try await vault.open(32_000)
            let key = StateKey("states", "vault.accounts")
            let size = try await #require(store.readLog(key)).snapshot.bytes.count
            #expect(size > 3 * 256 << 10)
            var round = 0
            while try await #require(store.readLog(key)).snapshot.version < 3 || round == 0 {
                try await vault.raise(4_000)
                round += 1
                try await vault.note(["round \(round)"])
                if round > 100 { break }
            }
            let operations = writes("accounts", since: 1)
            let parts = operations.count { if case .snapshotPart = $0 { true } else { false } }
            #expect(parts >= 3, "\(round) rounds")
            try await expectPersisted(vault)
        }
    }

    @Test("after a failed write the whole value is written, followed by changes")
    func afterFailure() async throws {
        try await withVault { vault, _, _ in
            try await vault.open(1_000)
            store.failWrites(StateStoreError(.full, "the disk is full"))
            await #expect(throws: TrebuchetError.self) { try await vault.move(1, from: 1, to: 2) }
            store.failWrites(nil)
            let seen = store.writes.count
            try await vault.move(1, from: 3, to: 4)
            guard case .snapshot? = writes("accounts", since: seen).first else {
                Issue.record("no snapshot after the failure")
                return
            }
            let before = store.writes.count
            try await vault.move(1, from: 5, to: 6)
            guard case .append? = writes("accounts", since: before).first else {
                Issue.record("no change after the snapshot")
                return
            }
            try await expectPersisted(vault)
        }
    }

    @Test("a subscriber that arrives while changes wait for the store gets the written value, then changes")
    func observedMeanwhile() async throws {
        try await withVault { vault, client, _ in
            try await vault.open(1_000)
            store.close()
            let count = store.journal.entries.count
            let first = Task { try await vault.move(1, from: 1, to: 2) }
            await store.journal.wait(for: "write \(count + 1)")
            let second = Task { try await vault.move(1, from: 3, to: 4) }
            let states = Task {
                var found: [KeyedCollection<Account>] = []
                for await state in await vault.observeAccounts() {
                    found.append(state)
                    if state[id: 6]?.balance == 101 { break }
                }
                return found
            }
            store.open()
            try await first.value
            try await second.value
            try await vault.move(1, from: 5, to: 6)
            let found = await states.value
            #expect(found.last?[id: 2]?.balance == 101)
            #expect(found.last?[id: 4]?.balance == 101)
            try await expectPersisted(vault)
        }
    }

    @Test("the store equals the actor after any sequence of changes, failures and observations", arguments: 1...6)
    func atRandom(seed: UInt64) async throws {
        var random = RandomSource(seed: seed)
        try await withVault { vault, client, _ in
            try await vault.open(Int.random(in: 0...400, using: &random))
            var next = 10_000
            var observer: Task<Void, Never>?
            for _ in 0..<60 {
                let count = try await vault.all().count
                switch Int.random(in: 0..<12, using: &random) {
                case 0..<5 where count > 0:
                    let ids = try await vault.all().map(\.id)
                    try await vault.move(1, from: ids.randomElement(using: &random)!, to: ids[0])
                case 5, 6:
                    next += 1
                    try await vault.add(next, at: Int.random(in: 0...count, using: &random))
                case 7 where count > 0: try await vault.remove(vault.all().randomElement(using: &random)!.id)
                case 8: try await vault.step(Int.random(in: 1...3, using: &random))
                case 9: try await vault.note((0..<Int.random(in: 0...300, using: &random)).map { "note \($0) \(next)" })
                case 10:
                    store.failWrites(StateStoreError(.full, "the disk is full"))
                    _ = try? await vault.step(1)
                    _ = try? await vault.add(next + 1_000_000, at: 0)
                    _ = try? await vault.remove(next + 1_000_000)
                    store.failWrites(nil)
                    // An earlier write may still fail, and with it the calls that wait for it.
                    while (try? await vault.step(1)) == nil {}
                case 11:
                    observer?.cancel()
                    observer = Task { for await _ in await vault.observeAccounts() {} }
                default: break
                }
            }
            observer?.cancel()
            try await vault.step(1)
            try await expectPersisted(vault)
        }
    }
}
