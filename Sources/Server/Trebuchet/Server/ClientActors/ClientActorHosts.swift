internal import Platform
internal import Networking
internal import Synchronization

/// The clients that have exported actors, by identity.
final class ClientActorHosts: Sendable {
    /// The minimum length of an identity: 128 bits in base64.
    static let shortestIdentity = 22

    /// A keyed hash of an identity, and the principal. A client with another principal counts as another client.
    struct Key: Hashable, Sendable {
        fileprivate let digest: [UInt8]
        fileprivate let principal: PrincipalName?
    }

    /// A client with the number of its lookups.
    private struct Entry {
        let client: ClientActorHost
        /// The number of lookups; after each one a connection is about to be attached.
        var lookups = 1
    }

    /// The known clients.
    private struct State {
        var entries: [Key: Entry] = [:]
        var count: UInt64 = 0
        var isClosed = false
    }

    let limits: ServerLimits
    let quotas: QuotaLedger
    let events: EventBus
    let methods = RemoteMethods()
    let errors = ErrorTypes(registration: "server.register")
    private let secret = (0..<32).map { _ in UInt8.random(in: 0 ... .max) }
    private let state = Mutex(State())

    init(limits: ServerLimits, quotas: QuotaLedger, events: EventBus) {
        self.events = events
        self.limits = limits
        self.quotas = quotas
    }

    func key(of identity: String, principal: PrincipalName?) -> Key {
        Key(digest: Digest.hmacSHA256(Array(identity.utf8), key: secret), principal: principal)
    }

    /// Returns the client of a connection that is about to be attached: the existing one if it is known, else a new one.
    ///
    /// - Parameter reactor: the reactor of the connection.
    func client(_ key: Key, _ scopes: QuotaScopes, reactor: Reactor) -> ClientActorHost {
        let client = state.withLock { state in
            if let known = state.entries[key]?.client {
                state.entries[key]?.lookups += 1
                return known
            }
            state.count += 1
            let client = ClientActorHost(key, state.count, self, scopes, reactor)
            if !state.isClosed { state.entries[key] = Entry(client: client) }
            return client
        }
        return client
    }

    /// Removes a client. Returns false, and keeps it, if a connection is about to be attached.
    ///
    /// - Parameter attached: the number of connections attached so far; nil removes it unconditionally.
    func remove(_ client: ClientActorHost, attached: Int?) -> Bool {
        state.withLock { state in
            guard let entry = state.entries[client.key], entry.client === client else { return true }
            if let attached, entry.lookups != attached { return false }
            state.entries[client.key] = nil
            return true
        }
    }

    /// Ends all clients when the server has shut down or is freed.
    func close() {
        let clients = state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.client)
        }
        for client in clients { client.close("is at a server that has shut down") }
    }

    var count: Int { state.withLock { $0.entries.count } }
}
