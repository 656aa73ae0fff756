import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// `@Idempotent` calls repeated at a server that was restarted over the same store.
@Suite(.timeLimit(.minutes(5))) struct IdempotencyIndexTests {
    let store = MemoryStore()

    /// Runs a server over a store until `body` ends.
    private func withServer(
        _ store: MemoryStore, limits: ServerLimits = ServerLimits(), drain: Duration = .zero,
        _ body: (RawPeer, TrebuchetServer) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits, store: store)
        await server.expose(EarlierCallAccount(actorSystem: server.actorSystem), as: "purse")
        let peer = try await RawPeer.connect(server.start())
        try await body(peer, server)
        peer.close()
        await server.shutdown(drain: drain)
    }

    /// The store as a killed process would leave it.
    private func copy() async throws -> MemoryStore {
        let copy = MemoryStore()
        for entry in try await store.list("calls") { try await copy.put(entry.value, entry.key) }
        let key = StateKey("states", "purse.coins")
        if let log = try await store.readLog(key) {
            try await copy.write([.snapshot(log.snapshot, key)] + log.entries.map { .append($0, key) })
        }
        return copy
    }

    private func answer(_ peer: RawPeer) async throws -> String { try #require(await peer.nextText()) }

    private func coins(_ peer: RawPeer) async throws -> String {
        peer.invoke("c", "purse", "count()")
        return try await answer(peer)
    }

    @Test(
        "an answered call gets its recorded response again, and does not run", arguments: ["add(_:)", "addLater(_:)"])
    func answered(target: String) async throws {
        var session = ""
        try await withServer(store) { (peer, _) async throws in
            session = peer.session
            peer.call("1", "purse", target, "[7]")
            #expect(try await answer(peer).contains(#""result":7"#))
        }
        try await withServer(store) { (peer, _) async throws in
            peer.call("1", "purse", target, "[7]", of: session)
            #expect(try await answer(peer).contains(#""result":7"#))
            #expect(try await coins(peer).contains(#""result":7"#))
            peer.call("2", "purse", target, "[7]", of: session)
            #expect(try await answer(peer).contains("unknownOutcome"), "never seen")
            peer.call("1", "purse", target, "[8]", of: session)
            #expect(try await answer(peer).contains("invalidArguments"), "another call")
        }
    }

    @Test("an error is a recorded response too")
    func failed() async throws {
        var session = ""
        try await withServer(store) { (peer, _) async throws in
            session = peer.session
            peer.call("1", "purse", "addAndThrow(_:)", "[3]")
            #expect(try await answer(peer).contains("over"))
        }
        try await withServer(store) { (peer, _) async throws in
            peer.call("1", "purse", "addAndThrow(_:)", "[3]", of: session)
            let again = try await answer(peer)
            #expect(again.contains("application"))
            #expect(again.contains("over"))
            #expect(try await coins(peer).contains(#""result":3"#))
        }
    }

    @Test("a call that had started without a response has an unknown outcome, and does not run again")
    func begun() async throws {
        try await withServer(store) { (peer, _) async throws in
            peer.call("1", "purse", "addInTwoSteps(_:)", "[2]")
            while try await store.list("calls").isEmpty { await Task.yield() }
            let left = try await copy()
            let session = peer.session
            try await withServer(left) { (second, _) async throws in
                second.call("1", "purse", "addInTwoSteps(_:)", "[2]", of: session)
                #expect(try await answer(second).contains("had started"))
                #expect(try await coins(second).contains(#""result":2"#))
            }
            peer.invoke("g", "purse", "proceed()")
            let answers = try await [answer(peer), answer(peer)]
            #expect(answers.contains { $0.contains(#""result":4"#) }, "\(answers)")
            try await withServer(copy()) { (second, _) async throws in
                second.call("1", "purse", "addInTwoSteps(_:)", "[2]", of: session)
                #expect(try await answer(second).contains(#""result":4"#))
                #expect(try await coins(second).contains(#""result":4"#))
            }
        }
    }

    @Test("a call without persisted changes is not recorded, and its outcome is unknown after a restart")
    func unchanged() async throws {
        var session = ""
        try await withServer(store) { (peer, _) async throws in
            session = peer.session
            peer.call("1", "purse", "look()")
            #expect(try await answer(peer).contains(#""result":0"#))
        }
        #expect(try await store.list("calls").isEmpty)
        try await withServer(store) { (peer, _) async throws in
            peer.call("1", "purse", "look()", of: session)
            #expect(try await answer(peer).contains("unknownOutcome"))
        }
    }

    @Test("a name that no server issues is not looked up")
    func unknownNames() async throws {
        try await withServer(store) { (peer, _) async throws in
            for name in ["a", "a/b", String(repeating: "a", count: 100_000)] {
                peer.call("1", "purse", "look()", of: name)
                #expect(try await answer(peer).contains("unknownOutcome"))
            }
        }
    }

    @Test("recorded responses are removed from the store when they expire, those of an earlier process too")
    func expiration() async throws {
        try await withServer(store) { (peer, _) async throws in
            peer.call("1", "purse", "add(_:)", "[1]")
            _ = try await answer(peer)
        }
        #expect(try await store.list("calls").count == 1)
        var limits = ServerLimits()
        limits.idempotency.retention = .milliseconds(20)
        try await withServer(store, limits: limits) { (peer, _) async throws in
            peer.call("1", "purse", "add(_:)", "[1]")
            _ = try await answer(peer)
            while try await !store.list("calls").isEmpty { await Task.yield() }
        }
    }
}

@Trebuchet
private distributed actor EarlierCallAccount {
    @StreamedState(persisted: true) var coins = 0
    private let gate = Gate()

    @Idempotent distributed func add(_ count: Int) -> Int {
        coins += count
        return coins
    }
    @Idempotent distributed func addLater(_ count: Int) async -> Int {
        await Task.yield()
        coins += count
        return coins
    }
    @Idempotent distributed func addAndThrow(_ count: Int) throws {
        coins += count
        throw TooMany(text: "over")
    }
    @Idempotent distributed func addInTwoSteps(_ count: Int) async -> Int {
        coins += count
        await gate.pass()
        coins += count
        return coins
    }
    @Idempotent distributed func look() -> Int { coins }
    distributed func proceed() { gate.open() }
    distributed func count() -> Int { coins }
}

private struct TooMany: Error, Codable { let text: String }

/// Admits one caller when it is opened.
private final class Gate: Sendable {
    private let opened = AsyncStream<Void>.makeStream()

    func pass() async { for await _ in opened.stream { return } }
    func open() { opened.continuation.yield() }
}
