internal import TrebuchetActors

/// How many streams a connection has, those that are being begun among them. On its reactor.
struct StreamUse {
    var streams: Int32 = 0
    /// Of these, with a filter.
    var filtered: Int32 = 0
}

/// The place of a stream in the shares until it has begun; given back when that does not come to pass.
///
/// `@unchecked Sendable`: `isHandedOver` is touched on the connection's reactor, and then when nobody else has it any more.
final class StreamStake: @unchecked Sendable {
    let isFiltered: Bool
    private let connection: ServerConnection
    private var isHandedOver = false

    fileprivate init(_ connection: ServerConnection, isFiltered: Bool) {
        self.connection = connection
        self.isFiltered = isFiltered
    }

    /// The stream has begun, and gives its place back itself.
    func handOver() { isHandedOver = true }

    deinit {
        guard !isHandedOver else { return }
        let (connection, isFiltered) = (connection, isFiltered)
        connection.shard.reactor.run { connection.giveBackStream(isFiltered: isFiltered) }
    }
}

/// A stream counts for its connection here, where that costs no memory, and for all others in the book.
extension ServerConnection {
    /// Throws when there is no room.
    func stake(filtered: Bool) throws(TrebuchetError) -> StreamStake {
        guard !isDraining else {
            throw TrebuchetError(.unavailable, "the server is shutting down and begins no streams")
        }
        let (limits, shares) = (shard.limits, shard.parts.shares)
        let connection = Party.connection(name.number)
        guard use.streams < limits.streamsPerConnection else { throw shares.refusal(.streams, connection) }
        guard !filtered || use.filtered < limits.filtersPerConnection else {
            throw shares.refusal(.filters, connection)
        }
        let holders = parties.beyondConnection
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

    func giveBackStream(isFiltered: Bool) {
        let holders = parties.beyondConnection
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
