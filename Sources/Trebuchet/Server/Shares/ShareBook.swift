internal import Platform
internal import Synchronization
internal import WebSockets

/// What a server has for all its clients together, and each party has a share of.
enum SharedResource: Int, CaseIterable, Sendable {
    case connections, streams, filters, actorsOnDemand, clientActors

    /// For errors.
    var name: String {
        switch self {
        case .connections: "connections"
        case .streams: "streams"
        case .filters: "streams with a filter"
        case .actorsOnDemand: "actors made on demand"
        case .clientActors: "references to actors that live in clients"
        }
    }
}

/// Who is behind a connection, as far as shares go: the connection, its principal when it has one, and its host unless that is
/// this machine, where a proxy may stand for many.
struct Parties: Sendable {
    /// Nil for the server itself.
    let connection: UInt64?
    let principal: String?
    let host: AddressKey?

    /// The server's actors, whose use counts for all alone.
    static let server = Parties(connection: nil, principal: nil, host: nil)

    /// The narrowest first.
    var all: [Party] { (connection.map { [.connection($0)] } ?? []) + wider }

    /// All but the connection, and the server with them.
    var beyondConnection: [Party] { wider + [.server] }

    private var wider: [Party] {
        var wider: [Party] = []
        if let principal { wider.append(.principal(PrincipalName(principal))) }
        if let host { wider.append(.host(host.number)) }
        return wider
    }
}

/// Counts who uses what. Not for what happens with each call.
final class ShareBook: Sendable {
    private struct Entry: Hashable {
        let resource: SharedResource
        let party: Party
    }

    private let counts = Mutex<[Entry: Int]>([:])
    private let limits: ServerLimits
    private let events: ServerEvents

    init(limits: ServerLimits, events: ServerEvents = ServerEvents()) {
        self.limits = limits
        self.events = events
    }

    /// Counts one more use, until the stake is given back or freed. Throws `rateLimited`, naming the limit, when that is one too
    /// many for somebody.
    func take(_ resource: SharedResource, for parties: Parties) throws(TrebuchetError) -> Stake {
        try take(resource, for: parties.all + [.server])
    }

    func take(_ resource: SharedResource, for holders: [Party]) throws(TrebuchetError) -> Stake {
        try count(resource, for: holders)
        return Stake(resource, holders, self)
    }

    /// Counts one more use until `discount`. Throws `rateLimited` as `take` does.
    func count(_ resource: SharedResource, for holders: [Party]) throws(TrebuchetError) {
        let full = counts.withLock { counts -> Party? in
            for holder in holders
            where counts[Entry(resource: resource, party: holder), default: 0]
                >= limits.share(of: resource, holder).limit
            {
                return holder
            }
            for holder in holders { counts[Entry(resource: resource, party: holder), default: 0] += 1 }
            return nil
        }
        if let full { throw refusal(resource, full) }
    }

    func discount(_ resource: SharedResource, for holders: [Party]) {
        counts.withLock { counts in
            for holder in holders {
                let entry = Entry(resource: resource, party: holder)
                let count = counts[entry, default: 1]
                counts[entry] = count > 1 ? count - 1 : nil
            }
        }
    }

    /// Counts uses for others than before. Nobody is refused: what is there is there.
    func move(_ resource: SharedResource, _ count: Int, from old: [Party], to new: [Party]) {
        guard count > 0 else { return }
        counts.withLock { counts in
            for holder in old {
                let entry = Entry(resource: resource, party: holder)
                let left = counts[entry, default: count] - count
                counts[entry] = left > 0 ? left : nil
            }
            for holder in new { counts[Entry(resource: resource, party: holder), default: 0] += count }
        }
    }

    func refusal(_ resource: SharedResource, _ party: Party) -> TrebuchetError {
        let (limit, setting) = limits.share(of: resource, party)
        events.countRefusal(by: setting)
        events.tell(.limitReached(setting: setting, nil))
        return TrebuchetError(
            .rateLimited,
            "\(party.name) \(limit) \(resource.name) already (ServerLimits.\(setting)); try again when some have gone")
    }

    /// Whether nobody uses anything.
    var isEmpty: Bool { counts.withLock { $0.isEmpty } }

    /// How many uses there are now, by all.
    func count(_ resource: SharedResource) -> Int {
        counts.withLock { $0[Entry(resource: resource, party: .server), default: 0] }
    }
}

/// One use of a shared resource; it counts until it is given back, or freed.
final class Stake: Sendable {
    private let resource: SharedResource
    private let holders: [Party]
    private let book: ShareBook
    private let isGivenBack = Atomic<Bool>(false)

    fileprivate init(_ resource: SharedResource, _ holders: [Party], _ book: ShareBook) {
        self.resource = resource
        self.holders = holders
        self.book = book
    }

    deinit { giveBack() }

    func giveBack() {
        guard !isGivenBack.exchange(true, ordering: .relaxed) else { return }
        book.discount(resource, for: holders)
    }
}
