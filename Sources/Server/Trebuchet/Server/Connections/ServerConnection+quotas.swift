internal import Platform
internal import TrebuchetActors

/// The number of streams of a connection, including streams that are starting. Isolated to its reactor.
struct StreamQuotaUsage {
    var streams: Int32 = 0
    /// The number of them that have a filter.
    var filtered: Int32 = 0
    /// The principal whose quota they use: the one at the start of the last stream. A reference, which costs an idle connection
    /// without a principal little memory.
    fileprivate var holder: PrincipalScope?

    fileprivate final class PrincipalScope {
        let principal: String

        init(_ principal: String) { self.principal = principal }
    }
}

/// The reservation of a stream until it has started; released if it does not start. It identifies a request, whose names the client
/// chooses.
///
/// `@unchecked Sendable`: mutable properties are accessed on the connection's reactor, and in `deinit`, when no other reference
/// exists.
final class StreamReservation: Reservation, @unchecked Sendable {
    let isFiltered: Bool
    private let connection: ServerConnection
    private var isTransferred = false
    /// Indicates whether the stream must not start any more.
    private(set) var isWithdrawn = false
    /// The error for the client in that case; nil when the client knows.
    private(set) var refusal: TrebuchetError?

    fileprivate init(_ connection: ServerConnection, isFiltered: Bool) {
        self.connection = connection
        self.isFiltered = isFiltered
    }

    /// Marks that the stream must not start: its client does not want it, or may not observe it.
    func withdraw(_ error: TrebuchetError?) {
        guard !isWithdrawn else { return }
        isWithdrawn = true
        refusal = error
    }

    /// Passes the reservation to the stream, which has started.
    func transfer() { isTransferred = true }

    /// Releases the reservation: the stream does not start. Call on the connection's reactor.
    func release() {
        guard !isTransferred else { return }
        isTransferred = true
        connection.releaseStream(isFiltered: isFiltered)
    }

    deinit {
        guard !isTransferred else { return }
        let (connection, isFiltered) = (connection, isFiltered)
        connection.shard.reactor.run { connection.releaseStream(isFiltered: isFiltered) }
    }
}

/// A stream counts for its connection here, which costs no memory, and for all other quota scopes in the quota ledger.
extension ServerConnection {
    /// The limits of the connection.
    var limits: ConnectionLimits { isServer ? shard.context.limitsOfServer : shard.context.limitsOfClient }

    /// The quota scopes of the connection.
    var scopes: QuotaScopes {
        if isServer { return .server }
        return QuotaScopes(connection: name.number, principal: callerConnection?.principal?.id, host: link.host)
    }

    /// Reserves a stream. Throws when a limit is reached.
    func reserveStream(filtered: Bool) throws(TrebuchetError) -> StreamReservation {
        let (limits, shares) = (limits, shard.context.shares)
        let connection = QuotaScope.connection(name.number)
        guard streamUsage.streams < limits.streams else { throw shares.refusal(.streams, connection) }
        guard !filtered || streamUsage.filtered < limits.filters else {
            throw shares.refusal(.filters, connection)
        }
        moveStreams(to: scopes.principal)
        let holders = streamHolders
        try shares.count(.streams, for: holders)
        if filtered {
            do throws(TrebuchetError) {
                try shares.count(.filters, for: holders)
            } catch {
                shares.discount(.streams, for: holders)
                throw error
            }
            streamUsage.filtered += 1
        }
        streamUsage.streams += 1
        return StreamReservation(self, isFiltered: filtered)
    }

    /// Reserves a stream that continues because its actor has moved. No limit applies: it was admitted before.
    func reserveMovedStream(filtered: Bool) -> StreamReservation {
        moveStreams(to: scopes.principal)
        let (shares, holders) = (shard.context.shares, streamHolders)
        shares.move(.streams, 1, from: [], to: holders)
        streamUsage.streams += 1
        if filtered {
            shares.move(.filters, 1, from: [], to: holders)
            streamUsage.filtered += 1
        }
        return StreamReservation(self, isFiltered: filtered)
    }

    /// The quota scopes that its streams use besides the connection.
    private var streamHolders: [QuotaScope] {
        QuotaScopes(connection: name.number, principal: streamUsage.holder?.principal, host: link.host).beyondConnection
    }

    /// Moves all its streams to the quota of a new principal, so that each is released from the scope that has it.
    private func moveStreams(to principal: String?) {
        guard principal.map({ PrincipalName($0) }) != streamUsage.holder.map({ PrincipalName($0.principal) }) else {
            return
        }
        let old = streamHolders
        streamUsage.holder = principal.map { StreamQuotaUsage.PrincipalScope($0) }
        let shares = shard.context.shares
        shares.move(.streams, Int(streamUsage.streams), from: old, to: streamHolders)
        shares.move(.filters, Int(streamUsage.filtered), from: old, to: streamHolders)
    }

    func releaseStream(isFiltered: Bool) {
        let holders = streamHolders
        streamUsage.streams -= 1
        shard.context.shares.discount(.streams, for: holders)
        guard isFiltered else { return }
        streamUsage.filtered -= 1
        shard.context.shares.discount(.filters, for: holders)
    }
}

extension FilterQuota {
    init(_ limits: ServerLimits, _ scopes: QuotaScopes) {
        self.init()
        maximumFilters = limits.filtersPerState
        byteLimit = limits.filterBytesPerState
        self.scopes = scopes.all
    }
}
