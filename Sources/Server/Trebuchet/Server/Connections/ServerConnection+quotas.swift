internal import Platform
internal import TrebuchetActors

/// The number of streams of a connection, including streams that are starting. Isolated to its reactor.
struct StreamQuotaUsage {
    var streams: Int32 = 0
    /// The number of them that have a filter.
    var filtered: Int32 = 0
    /// The account in which they count besides the connection: that of the principal at the start of the last stream. Nil for that
    /// of the server alone, and before the first stream; a reference, since each idle connection has it.
    fileprivate var holder: Holder?

    fileprivate final class Holder {
        let account: QuotaAccount

        init(_ account: QuotaAccount) { self.account = account }
    }
}

/// The reservation of a stream until it has started; released if it does not start. It identifies a request, whose names the client
/// chooses.
///
/// `@unchecked Sendable`: mutable properties are accessed on the connection's reactor, and in `deinit`, when no other reference
/// exists.
package final class StreamReservation: @unchecked Sendable {
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
        let (limits, quotas) = (limits, shard.context.quotas)
        guard streamUsage.streams < limits.streams else { throw quotas.refusal(.streams, of: name.number) }
        guard !filtered || streamUsage.filtered < limits.filters else {
            throw quotas.refusal(.filters, of: name.number)
        }
        let account = moveStreams()
        do throws(QuotaExceeded) {
            if filtered { try account.reserve(.streams, with: .filters) } else { try account.reserve(.streams) }
        } catch {
            throw quotas.refusal(error)
        }
        return countStream(filtered: filtered)
    }

    /// Reserves a stream that continues because its actor has moved. No limit applies: it was admitted before.
    package func reserveMovedStream(filtered: Bool) -> StreamReservation {
        let account = moveStreams()
        account.add(.streams, 1)
        if filtered { account.add(.filters, 1) }
        return countStream(filtered: filtered)
    }

    private func countStream(filtered: Bool) -> StreamReservation {
        streamUsage.streams += 1
        if filtered { streamUsage.filtered += 1 }
        return StreamReservation(self, isFiltered: filtered)
    }

    /// The account in which its streams count besides the connection.
    private var streamAccount: QuotaAccount {
        streamUsage.holder?.account ?? shard.context.quotas.account(for: .server)
    }

    /// Moves all its streams to the account of its present principal, so that each is released from the account that has it.
    private func moveStreams() -> QuotaAccount {
        let (old, scopes) = (streamAccount, scopes)
        let principal = scopes.principal.map { QuotaScope.principal(PrincipalName($0)) }
        let isCurrent = principal == old.principalScope
        if streamUsage.holder != nil || scopes.host == nil, isCurrent { return old }
        let new = shard.context.quotas.account(for: scopes)
        streamUsage.holder = StreamQuotaUsage.Holder(new)
        for (resource, count) in [(SharedResource.streams, streamUsage.streams), (.filters, streamUsage.filtered)] {
            new.add(resource, Int(count))
            old.release(resource, Int(count))
        }
        return new
    }

    func releaseStream(isFiltered: Bool) {
        let account = streamAccount
        streamUsage.streams -= 1
        account.release(.streams)
        guard isFiltered else { return }
        streamUsage.filtered -= 1
        account.release(.filters)
    }
}

extension FilterQuota {
    init(_ limits: ServerLimits, _ scopes: QuotaScopes) {
        self.init()
        maximumFilters = limits.filters.perState
        byteLimit = limits.filters.bytesPerState
        self.scopes = scopes.all
    }
}
