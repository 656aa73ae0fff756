internal import Platform
internal import TrebuchetActors

/// How many streams a connection has, those that are being begun among them. On its reactor.
struct StreamUse {
    var streams: Int32 = 0
    /// Of these, with a filter.
    var filtered: Int32 = 0
    /// In whose shares they count: who was signed in when the last one was begun. Behind a reference, which an idle connection of
    /// nobody has room for.
    fileprivate var holder: Holder?

    fileprivate final class Holder {
        let principal: String

        init(_ principal: String) { self.principal = principal }
    }
}

/// The place of a stream in the shares until it has begun; given back when that does not come to pass. It is what tells one
/// request from another, as their names are the client's.
///
/// `@unchecked Sendable`: what varies is touched on the connection's reactor, and then when nobody else has it any more.
final class StreamStake: HeldPlace, @unchecked Sendable {
    let isFiltered: Bool
    private let connection: ServerConnection
    private var isHandedOver = false
    /// Whether the stream is not to begin any more.
    private(set) var isWithdrawn = false
    /// What the client is told then; nil when it knows.
    private(set) var refusal: TrebuchetError?

    fileprivate init(_ connection: ServerConnection, isFiltered: Bool) {
        self.connection = connection
        self.isFiltered = isFiltered
    }

    /// The stream is not to begin any more: its client does not want it, or may not observe it.
    func withdraw(_ error: TrebuchetError?) {
        guard !isWithdrawn else { return }
        isWithdrawn = true
        refusal = error
    }

    /// The stream has begun, and gives its place back itself.
    func handOver() { isHandedOver = true }

    /// What it was for is not to be. On the connection's reactor.
    func giveBack() {
        guard !isHandedOver else { return }
        isHandedOver = true
        connection.giveBackStream(isFiltered: isFiltered)
    }

    deinit {
        guard !isHandedOver else { return }
        let (connection, isFiltered) = (connection, isFiltered)
        connection.shard.reactor.run { connection.giveBackStream(isFiltered: isFiltered) }
    }
}

/// A stream counts for its connection here, where that costs no memory, and for all others in the book.
extension ServerConnection {
    /// What it may have at once.
    var limits: ConnectionLimits { isServer ? shard.parts.limitsOfServer : shard.parts.limitsOfClient }

    /// Whose shares it uses.
    var parties: Parties {
        if isServer { return .server }
        return Parties(connection: name.number, principal: caller?.principal?.id, host: link.host)
    }

    /// Throws when there is no room.
    func stake(filtered: Bool) throws(TrebuchetError) -> StreamStake {
        let (limits, shares) = (limits, shard.parts.shares)
        let connection = Party.connection(name.number)
        guard use.streams < limits.streams else { throw shares.refusal(.streams, connection) }
        guard !filtered || use.filtered < limits.filters else {
            throw shares.refusal(.filters, connection)
        }
        moveStreams(to: parties.principal)
        let holders = streamHolders
        try shares.count(.streams, for: holders)
        if filtered {
            do throws(TrebuchetError) {
                try shares.count(.filters, for: holders)
            } catch {
                shares.discount(.streams, for: holders)
                throw error
            }
            use.filtered += 1
        }
        use.streams += 1
        return StreamStake(self, isFiltered: filtered)
    }

    /// For a stream that goes on, of an actor that has moved: it was let in before, and no limit ends it.
    func stakeOfMoved(filtered: Bool) -> StreamStake {
        moveStreams(to: parties.principal)
        let (shares, holders) = (shard.parts.shares, streamHolders)
        shares.move(.streams, 1, from: [], to: holders)
        use.streams += 1
        if filtered {
            shares.move(.filters, 1, from: [], to: holders)
            use.filtered += 1
        }
        return StreamStake(self, isFiltered: filtered)
    }

    /// In whose shares its streams count beside its own.
    private var streamHolders: [Party] {
        Parties(connection: name.number, principal: use.holder?.principal, host: link.host).beyondConnection
    }

    /// Has all its streams count for somebody else who has signed in: so each is given back by whom it was taken.
    private func moveStreams(to principal: String?) {
        guard principal.map({ PrincipalName($0) }) != use.holder.map({ PrincipalName($0.principal) }) else { return }
        let old = streamHolders
        use.holder = principal.map { StreamUse.Holder($0) }
        let shares = shard.parts.shares
        shares.move(.streams, Int(use.streams), from: old, to: streamHolders)
        shares.move(.filters, Int(use.filtered), from: old, to: streamHolders)
    }

    func giveBackStream(isFiltered: Bool) {
        let holders = streamHolders
        use.streams -= 1
        shard.parts.shares.discount(.streams, for: holders)
        guard isFiltered else { return }
        use.filtered -= 1
        shard.parts.shares.discount(.filters, for: holders)
    }
}

extension FilterTerms {
    init(_ limits: ServerLimits, _ parties: Parties) {
        self.init()
        most = limits.filtersPerState
        byteLimit = limits.filterBytesPerState
        bringers = parties.all
    }
}
