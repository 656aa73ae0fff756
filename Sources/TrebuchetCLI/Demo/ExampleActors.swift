import Synchronization
import Trebuchet

/// The example actors of `serve --examples`, and their limits: every client may call them.
enum ExampleActors {
    /// The names of the actors that exist from the start.
    static let names = ["todos", "counter", "game"]
    /// The maximum number of items, and of players.
    static let itemCount = 1_000
    /// The maximum size of a title or name in bytes of UTF-8.
    static let nameSize = 128
    /// The maximum number of names of `counters/*` that one process uses. Each has a row in the store.
    static let counterCount = 100_000

    static func expose(on server: TrebuchetServer) async {
        let system = server.actorSystem
        await server.expose(TodoList(actorSystem: system), as: "todos")
        await server.expose(Counter(actorSystem: system), as: "counter")
        await server.expose(GameServer(actorSystem: system), as: "game")
        let counters = NameQuota(limit: counterCount)
        server.expose(PersistedCounter.self, as: "counters/*", placement: .cluster) { name in
            try counters.add(name)
            return PersistedCounter(actorSystem: system)
        }
    }

    /// Throws `invalidArguments` for a text that is empty or too long, or has control characters, each of which takes six
    /// bytes of JSON.
    static func checkName(_ text: String, _ what: String) throws(TrebuchetError) {
        guard 1...nameSize ~= text.utf8.count, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw TrebuchetError(
                .invalidArguments,
                "a \(what) has 1 to \(nameSize) bytes and no control characters; this one has \(text.utf8.count) bytes")
        }
    }

    /// Throws `rateLimited` at the maximum number of items.
    static func checkRoom(_ count: Int, _ what: String, toMakeRoom advice: String) throws(TrebuchetError) {
        guard count < itemCount else {
            throw TrebuchetError(.rateLimited, "there are \(itemCount) \(what), the maximum; \(advice)")
        }
    }
}

/// The names of actors that were activated on demand, up to a limit.
final class NameQuota: Sendable {
    private let limit: Int
    private let names = Mutex<Set<String>>([])

    init(limit: Int) { self.limit = limit }

    /// Records a name. Throws `rateLimited` for a new one at the limit.
    func add(_ name: String) throws(TrebuchetError) {
        let isThere = names.withLock { names in
            guard names.count < limit || names.contains(name) else { return false }
            names.insert(name)
            return true
        }
        guard isThere else {
            throw TrebuchetError(
                .rateLimited, "this server has \(limit) names of this pattern, the maximum; use an existing one")
        }
    }
}
