internal import Platform
internal import Synchronization
internal import WebSockets

/// A resource with a limit for the server and a quota for each scope.
enum SharedResource: Int, CaseIterable, Sendable {
    case connections, streams, filters, actorsOnDemand, clientActors

    /// The plural name in error messages.
    var name: String {
        switch self {
        case .connections: "connections"
        case .streams: "streams"
        case .filters: "streams with a filter"
        case .actorsOnDemand: "activated actors"
        case .clientActors: "references to client actors"
        }
    }

    /// Returns a number of uses in words, for error messages.
    func text(of count: Int) -> String {
        switch self {
        case .filters: count.counted("stream with a filter", name)
        case .clientActors: count.counted("reference to client actors", name)
        case .connections, .streams, .actorsOnDemand: count.counted(String(name.dropLast()))
        }
    }
}

/// The scopes of a connection that have quotas: the connection, its principal if it has one, its host and its network. Loopback
/// is no host, since a proxy may represent many clients.
struct QuotaScopes: Sendable, Equatable {
    /// The number of the connection; nil for the server itself.
    let connection: UInt64?
    let principal: String?
    let host: AddressKey?

    /// The server's actors, whose use counts for the server only.
    static let server = QuotaScopes(connection: nil, principal: nil, host: nil)

    /// All scopes, the narrowest first.
    var all: [QuotaScope] { (connection.map { [.connection($0)] } ?? []) + wider }

    /// All scopes except the connection, including the server.
    var beyondConnection: [QuotaScope] { wider + [.server] }

    /// Compares principals by bytes.
    static func == (a: Self, b: Self) -> Bool {
        a.connection == b.connection && a.host == b.host
            && a.principal.map { PrincipalName($0) } == b.principal.map { PrincipalName($0) }
    }

    private var wider: [QuotaScope] {
        var wider: [QuotaScope] = []
        if let principal { wider.append(.principal(PrincipalName(principal))) }
        if let host {
            wider.append(.host(host.number))
            if host.network != host { wider.append(.network(host.network.number)) }
        }
        return wider
    }
}

/// Counts the use of resources by scope. Too slow for every call.
final class QuotaLedger: Sendable {
    /// A resource and the scope that uses it.
    private struct Entry: Hashable {
        let resource: SharedResource
        let scope: QuotaScope
    }

    private let counts = Mutex<[Entry: Int]>([:])
    private let limits: ServerLimits
    private let events: EventBus

    init(limits: ServerLimits, events: EventBus = EventBus()) {
        self.limits = limits
        self.events = events
    }

    /// Counts one more use until the reservation is released or freed. Throws `rateLimited` with the name of the limit if a scope has
    /// reached it.
    func reserve(_ resource: SharedResource, for scopes: QuotaScopes) throws(TrebuchetError) -> QuotaReservation {
        try reserve(resource, for: scopes.all + [.server])
    }

    func reserve(_ resource: SharedResource, for holders: [QuotaScope]) throws(TrebuchetError) -> QuotaReservation {
        try count(resource, for: holders)
        return QuotaReservation(resource, holders, self)
    }

    /// Reserves an activated actor. Throws `rateLimited` at the server's limit, and a `CallerRefusal` with that error at a limit of the
    /// caller.
    func reserveActivation(for scopes: QuotaScopes) throws -> QuotaReservation {
        let holders = scopes.all + [.server]
        if let full = countUnlessFull(.actorsOnDemand, for: holders) {
            let error = refusal(.actorsOnDemand, full)
            guard full != .server else { throw error }
            throw CallerRefusal(error, of: full)
        }
        return QuotaReservation(.actorsOnDemand, holders, self)
    }

    /// Counts one more use until `discount`. Throws `rateLimited` as `reserve` does.
    func count(_ resource: SharedResource, for holders: [QuotaScope]) throws(TrebuchetError) {
        if let full = countUnlessFull(resource, for: holders) { throw refusal(resource, full) }
    }

    /// Returns the first scope that has reached its limit; then nothing is counted.
    private func countUnlessFull(_ resource: SharedResource, for holders: [QuotaScope]) -> QuotaScope? {
        counts.withLock { counts -> QuotaScope? in
            for holder in holders
            where counts[Entry(resource: resource, scope: holder), default: 0]
                >= limits.share(of: resource, holder).limit
            {
                return holder
            }
            for holder in holders { counts[Entry(resource: resource, scope: holder), default: 0] += 1 }
            return nil
        }
    }

    func discount(_ resource: SharedResource, for holders: [QuotaScope]) {
        counts.withLock { counts in
            for holder in holders {
                let entry = Entry(resource: resource, scope: holder)
                let count = counts[entry, default: 1]
                counts[entry] = count > 1 ? count - 1 : nil
            }
        }
    }

    /// Moves existing uses to other scopes. It checks no limit, since the uses exist already.
    func move(_ resource: SharedResource, _ count: Int, from old: [QuotaScope], to new: [QuotaScope]) {
        guard count > 0 else { return }
        counts.withLock { counts in
            for holder in old {
                let entry = Entry(resource: resource, scope: holder)
                let left = counts[entry, default: count] - count
                counts[entry] = left > 0 ? left : nil
            }
            for holder in new { counts[Entry(resource: resource, scope: holder), default: 0] += count }
        }
    }

    func refusal(_ resource: SharedResource, _ scope: QuotaScope) -> TrebuchetError {
        let (limit, setting) = limits.share(of: resource, scope)
        events.countRejection(limit: setting)
        events.emit(.limitReached(setting: setting, nil))
        return TrebuchetError(
            .rateLimited,
            "quota exceeded: \(scope.name) \(resource.text(of: limit)) (ServerLimits.\(setting)); retry when some have ended"
        )
    }

    /// Whether no resource is in use.
    var isEmpty: Bool { counts.withLock { $0.isEmpty } }

    /// Returns the number of uses by all scopes.
    func count(_ resource: SharedResource) -> Int {
        counts.withLock { $0[Entry(resource: resource, scope: .server), default: 0] }
    }
}

/// One use of a shared resource; it counts until it is released or freed.
final class QuotaReservation: Sendable {
    private let resource: SharedResource
    private let holders: [QuotaScope]
    private let ledger: QuotaLedger
    private let isReleased = Atomic<Bool>(false)

    fileprivate init(_ resource: SharedResource, _ holders: [QuotaScope], _ ledger: QuotaLedger) {
        self.resource = resource
        self.holders = holders
        self.ledger = ledger
    }

    deinit { release() }

    func release() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        ledger.discount(resource, for: holders)
    }
}
