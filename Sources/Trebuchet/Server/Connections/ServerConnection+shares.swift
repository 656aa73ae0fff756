internal import TrebuchetActors

/// How many streams a connection has, those that are being begun among them. On its reactor.
struct StreamUse {
    var streams: Int32 = 0
    /// Of these, with a filter.
    var filtered: Int32 = 0
    /// In whose shares they count, but for the connection's: whoever was there when the last one was begun.
    var holders: [Party] = []
}

/// The place of a stream in the shares until it has begun; given back when that does not come to pass. It is what tells one
/// request from another, as their names are the client's.
///
/// `@unchecked Sendable`: what varies is touched on the connection's reactor, and then when nobody else has it any more.
final class StreamStake: @unchecked Sendable {
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
        let holders = holders()
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

    /// In whose shares its streams count. Where that is somebody else by now, all of them are moved there: so each is given back by
    /// whom it was taken.
    private func holders() -> [Party] {
        let holders = parties.beyondConnection
        guard holders != use.holders else { return holders }
        let shares = shard.parts.shares
        shares.move(.streams, Int(use.streams), from: use.holders, to: holders)
        shares.move(.filters, Int(use.filtered), from: use.holders, to: holders)
        use.holders = holders
        return holders
    }

    func giveBackStream(isFiltered: Bool) {
        let holders = use.holders
        use.streams -= 1
        shard.parts.shares.discount(.streams, for: holders)
        if isFiltered {
            use.filtered -= 1
            shard.parts.shares.discount(.filters, for: holders)
        }
        // An idle client is not to keep the memory that its streams took.
        if use.streams == 0 { use.holders = [] }
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
