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
    /// The maximum number of names of `counters/*` that one process uses. Each has a row in the store. A host may use a 64th, and
    /// a network of IPv6 hosts a 16th.
    static let counterCount = 100_000

    /// The limits of a server that hosts them. A connection may change the list of to-dos ten times a second: each change costs as
    /// much as the list is long.
    static var limits: ServerLimits {
        var limits = ServerLimits()
        for method in ["addTodo(title:)", "toggleTodo(id:)", "removeTodo(id:)"] {
            limits.calls.rate.perMethod[RatedMethod(method, of: TodoList.self)] = RateLimit(
                callsPerSecond: 10, burst: 100)
        }
        return limits
    }

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

/// The names of actors that were activated on demand, up to a limit, and up to a part of it for each host.
final class NameQuota: Sendable {
    private struct Contents {
        var names: Set<String> = []
        var hosts = UsageCounts<CallerHost, Int>()
    }

    /// The divisors of the quotas of a host, and of a network of hosts.
    private static let (hostDivisor, networkDivisor) = (64, 16)

    private let limit: Int
    private let contents = Mutex(Contents())

    init(limit: Int) { self.limit = limit }

    /// Records a name. Throws `rateLimited` for a new one at the limit.
    ///
    /// - Parameter host: the host of the first caller; nil for loopback callers, which have no separate quota.
    func add(_ name: String, of host: CallerHost? = ActivationOrigin.current?.host) throws(TrebuchetError) {
        let exceeded = contents.withLock { contents -> Int? in
            if contents.names.contains(name) { return nil }
            if contents.names.count >= limit { return limit }
            if let host {
                let (quota, most) = (max(1, limit / Self.hostDivisor), max(1, limit / Self.networkDivisor))
                if contents.hosts[host] >= quota { return quota }
                if host.network != host {
                    if contents.hosts[host.network] >= most { return most }
                    contents.hosts.add(1, to: host.network)
                }
                contents.hosts.add(1, to: host)
            }
            contents.names.insert(name)
            return nil
        }
        guard let exceeded else { return }
        let owner = exceeded == limit ? "this server has" : "this host has used"
        throw TrebuchetError(
            .rateLimited, "\(owner) \(exceeded) names of this pattern, the maximum; use an existing one")
    }
}
