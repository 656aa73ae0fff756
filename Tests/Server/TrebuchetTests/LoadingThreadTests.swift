import Platform
import Synchronization
import Testing
import Trebuchet
import TrebuchetTesting

/// Decoding of persisted states: the reactor serves other actors meanwhile.
@Suite(.timeLimit(.minutes(5))) struct LoadingThreadTests {
    @Test("a large state is decoded off the actor's reactor, with or without change tracking")
    func offReactor() async throws {
        let store = MemoryStore()
        try await withTestServer(reactors: 1, store: store) { server in
            await server.expose(LargeActor(actorSystem: server.actorSystem), as: "large/a")
        } body: { client, _ in
            let large = try client.resolve(LargeActor.self, id: "large/a")
            try await large.fill(5_000)
            for number in 0..<20 { try await large.change(number) }
        }
        try await withTestServer(reactors: 1, store: store) { server in
            let system = server.actorSystem
            server.expose(LargeActor.self, as: "large/*") { _ in LargeActor(actorSystem: system) }
        } body: { client, _ in
            Watched.threads.withLock { $0 = [] }
            let large = try client.resolve(LargeActor.self, id: "large/a")
            let reactor = try await large.thread()
            #expect(try await large.count() == [5_000, 5_000])
            let threads = Watched.threads.withLock { $0 }
            #expect(!threads.isEmpty && !threads.contains(reactor))
        }
    }
}

/// Records the thread that decodes it.
private struct Watched: Codable, Sendable {
    static let threads = Mutex<Set<UInt>>([])

    var text = ""

    init(_ text: String) { self.text = text }

    init(from decoder: any Decoder) throws {
        Self.threads.withLock { _ = $0.insert(currentThread) }
        text = try decoder.singleValueContainer().decode(String.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// One state that is compared to find its changes, and one that tracks them.
@Trebuchet
private distributed actor LargeActor {
    struct Row: Codable, Sendable, Identifiable {
        let id: Int
        var text: Watched
    }

    @StreamedState(persisted: true) var texts: [Watched] = []
    @StreamedState(persisted: true) var rows = KeyedCollection<Row>()

    distributed func fill(_ count: Int) {
        texts = (0..<count).map { Watched("text \($0) of some length") }
        rows = KeyedCollection(texts.enumerated().map { Row(id: $0, text: $1) })
    }
    distributed func change(_ index: Int) {
        texts[index] = Watched("changed")
        rows.update(id: index) { $0.text = Watched("changed") }
    }
    distributed func count() -> [Int] { [texts.count, rows.count] }
    distributed func thread() -> UInt { currentThread }
}
