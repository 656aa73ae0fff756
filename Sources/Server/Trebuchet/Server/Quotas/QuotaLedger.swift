internal import Bytes
internal import Platform
internal import Synchronization
internal import WebSockets

/// Counts the use of each shared resource, items and bytes, by scope: connections and clients, principals, hosts with their
/// networks, and the server.
///
/// A scope has one row with the counts of all resources, which any reactor changes without a lock. Users hold the rows of their
/// scopes as a `QuotaAccount`, so that a use needs no lookup. A row without references is freed.
final class QuotaLedger: Sendable {
    private struct Entry {
        weak var row: QuotaRow?
    }

    /// The row of the server.
    let server: QuotaRow
    private let limits: ServerLimits
    /// The limits of all resources for each kind of scope.
    private let limitsByKind: [[QuotaLimit]]
    private let events: EventBus
    private let rows = Mutex<[QuotaScope: Entry]>([:])

    /// - Parameter memory: the budget of `ServerLimits.memory.total`, in which the bytes of calls to clients and of responses in
    ///   memory also count.
    init(limits: ServerLimits, memory: MemoryBudget? = nil, events: EventBus = EventBus()) {
        self.limits = limits
        self.events = events
        limitsByKind = QuotaScope.Kind.allCases.map { kind in
            SharedResource.allCases.map { limits.quotas(of: $0)[kind] }
        }
        server = QuotaRow(.server, limitsByKind[QuotaScope.server.kind.rawValue], memory: memory)
    }

    /// Returns the account of a connection or client.
    ///
    /// - Parameter own: the scope of the connection or client itself; nil where its use is not counted here.
    func account(for scopes: QuotaScopes, own: QuotaScope? = nil) -> QuotaAccount {
        let network = scopes.host.flatMap { $0.network == $0 ? nil : row(of: .network($0.network.number)) }
        return QuotaAccount(
            own: own.map { row(of: $0) },
            principal: scopes.principal.map { row(of: .principal(PrincipalName($0))) },
            host: scopes.host.map { row(of: .host($0.number), in: network) }, server: server)
    }

    /// Returns the row of a scope other than the server.
    ///
    /// - Parameter network: the row of a host's network, if it has one.
    func row(of scope: QuotaScope, in network: QuotaRow? = nil) -> QuotaRow {
        rows.withLock { rows in
            if let row = rows[scope]?.row { return row }
            let memory = scope.kind == .principal ? MemoryBudget(limit: limits.memory.ofPrincipal) : nil
            let row = QuotaRow(
                scope, limitsByKind[scope.kind.rawValue], memory: memory, network: network, ledger: self)
            rows[scope] = Entry(row: row)
            return row
        }
    }

    fileprivate func remove(_ scope: QuotaScope) {
        let other: QuotaRow? = rows.withLock { rows in
            // Another thread may have created a new row for the scope during the old row's deinit.
            if let other = rows[scope]?.row { return other }
            rows[scope] = nil
            return nil
        }
        // Keep `other` alive until the lock is released: if it were freed within it, its deinit would lock again.
        withExtendedLifetime(other) {}
    }

    /// Reserves one use until the reservation is released or freed. Throws `rateLimited` with the name of the limit if a scope has
    /// reached it.
    ///
    /// - Parameter bytes: bytes to reserve together with it.
    func reserve(
        _ resource: SharedResource, with bytes: QuotaReservation.Bytes? = nil, in account: QuotaAccount
    ) throws(TrebuchetError) -> QuotaReservation {
        do throws(QuotaExceeded) {
            return try QuotaReservation(resource, with: bytes, in: account)
        } catch {
            throw refusal(error)
        }
    }

    /// Returns the error for a use that a limit refuses, and counts it in the metrics. Emits an event, so it must not be called
    /// within a lock.
    func refusal(_ exceeded: QuotaExceeded) -> TrebuchetError {
        events.countRejection(limit: exceeded.limit.setting)
        events.emit(.limitReached(setting: exceeded.limit.setting, nil))
        return exceeded.error
    }

    /// Returns the error for a connection that has reached its limit.
    func refusal(_ resource: SharedResource, of connection: UInt64) -> TrebuchetError {
        let limit = limits.quotas(of: resource).own
        return refusal(QuotaExceeded(resource: resource, scope: .connection(connection), limit: limit))
    }

    /// True if no resource is in use.
    var isEmpty: Bool {
        let rows = rows.withLock { $0.values.compactMap(\.row) } + [server]
        return rows.allSatisfy { row in SharedResource.allCases.allSatisfy { row.count($0) == 0 } }
    }

    /// The number of scopes, besides the server, with references.
    var scopeCount: Int { rows.withLock { $0.count } }

    /// Returns the use of a resource by all scopes.
    func count(_ resource: SharedResource) -> Int { server.count(resource) }
}

/// The use of all resources by one scope.
final class QuotaRow: Sendable {
    let scope: QuotaScope
    /// The budget of the buffered memory of a principal or of the server, in which some bytes also count.
    let memory: MemoryBudget?
    /// The row of the host's network.
    fileprivate let network: QuotaRow?
    /// Nil for the server's row, which its ledger holds.
    private let ledger: QuotaLedger?
    private let limits: [QuotaLimit]
    /// The use of each resource. As many as there are resources: an index beyond the end traps.
    private let uses = InlineArray<11, Atomic<Int>> { _ in Atomic(0) }

    fileprivate init(
        _ scope: QuotaScope, _ limits: [QuotaLimit], memory: MemoryBudget?, network: QuotaRow? = nil,
        ledger: QuotaLedger? = nil
    ) {
        self.scope = scope
        self.limits = limits
        self.memory = memory
        self.network = network
        self.ledger = ledger
    }

    deinit { ledger?.remove(scope) }

    /// The principal whose row it is.
    var principal: PrincipalName? { if case .principal(let name) = scope { name } else { nil } }

    func count(_ resource: SharedResource) -> Int { uses[resource.rawValue].load(ordering: .relaxed) }

    /// Takes `amount`. Returns false, and counts nothing, if a limit is reached.
    fileprivate func reserve(_ resource: SharedResource, _ amount: Int) -> Bool {
        let memory = memory(for: resource)
        guard memory?.reserve(amount) != false else { return false }
        let limit = limits[resource.rawValue].value
        if uses[resource.rawValue].add(amount, ordering: .relaxed).newValue <= limit { return true }
        add(resource, -amount)
        return false
    }

    /// Counts a change regardless of the limits.
    fileprivate func add(_ resource: SharedResource, _ change: Int) {
        uses[resource.rawValue].add(change, ordering: .relaxed)
        memory(for: resource)?.adjustUsage(by: change)
    }

    /// The budget in which bytes of a resource also count: those of the server's memory, and of a principal's calls.
    private func memory(for resource: SharedResource) -> MemoryBudget? {
        switch resource {
        case .clientCallBytes: memory
        case .recordedResponseBytes: scope == .server ? memory : nil
        default: nil
        }
    }

    fileprivate func exceeded(_ resource: SharedResource) -> QuotaExceeded {
        QuotaExceeded(resource: resource, scope: scope, limit: limits[resource.rawValue])
    }
}

/// The rows in which the use of a connection or client counts. A use counts in all of them or in none.
struct QuotaAccount: Sendable {
    /// The row of the connection or client itself; nil where its use is not counted here.
    fileprivate let own: QuotaRow?
    fileprivate let principal: QuotaRow?
    /// Also counts in the row of its network.
    fileprivate let host: QuotaRow?
    fileprivate let server: QuotaRow

    fileprivate init(own: QuotaRow?, principal: QuotaRow?, host: QuotaRow?, server: QuotaRow) {
        (self.own, self.principal, self.host, self.server) = (own, principal, host, server)
    }

    /// The scope of the principal.
    var principalScope: QuotaScope? { principal?.scope }

    /// Returns the first row, from the narrowest scope on, that meets a condition.
    private func firstRow(where condition: (QuotaRow) -> Bool) -> QuotaRow? {
        if let own, condition(own) { return own }
        if let principal, condition(principal) { return principal }
        if let host {
            if condition(host) { return host }
            if let network = host.network, condition(network) { return network }
        }
        return condition(server) ? server : nil
    }

    /// Reserves `amount`. Throws the limit of the narrowest scope that has no room.
    func reserve(_ resource: SharedResource, _ amount: Int = 1) throws(QuotaExceeded) {
        guard amount != 0, let full = firstRow(where: { !$0.reserve(resource, amount) }) else { return }
        _ = firstRow { row in
            if row === full { return true }
            row.add(resource, -amount)
            return false
        }
        throw full.exceeded(resource)
    }

    /// Reserves an item together with an amount of another resource; both or none.
    func reserve(
        _ item: SharedResource, with resource: SharedResource, _ amount: Int = 1
    ) throws(QuotaExceeded) {
        try reserve(item)
        do throws(QuotaExceeded) {
            try reserve(resource, amount)
        } catch {
            release(item)
            throw error
        }
    }

    /// Counts uses that exist already, regardless of the limits.
    func add(_ resource: SharedResource, _ amount: Int) {
        guard amount != 0 else { return }
        _ = firstRow { row in
            row.add(resource, amount)
            return false
        }
    }

    func release(_ resource: SharedResource, _ amount: Int = 1) { add(resource, -amount) }
}

/// One use of a shared resource, perhaps with bytes; it counts until it is released or freed.
final class QuotaReservation: Sendable {
    typealias Bytes = (resource: SharedResource, count: Int)

    private let resource: SharedResource
    private let bytes: Bytes?
    private let account: QuotaAccount
    private let isReleased = Atomic<Bool>(false)

    init(_ resource: SharedResource, with bytes: Bytes? = nil, in account: QuotaAccount) throws(QuotaExceeded) {
        if let bytes {
            try account.reserve(resource, with: bytes.resource, bytes.count)
        } else {
            try account.reserve(resource)
        }
        self.resource = resource
        self.bytes = bytes
        self.account = account
    }

    deinit { release() }

    func release() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        account.release(resource)
        if let bytes { account.release(bytes.resource, bytes.count) }
    }
}
