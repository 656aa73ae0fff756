internal import TrebuchetActors

/// The quotas of persisted responses of one connection.
struct ConnectionResponseQuota: RecordedResponseQuota {
    private let holding: IdempotencyReservation
    /// nil for the server's own connections.
    private let connection: ScopedQuota<CallSessionID>?

    init(_ holding: IdempotencyReservation, _ connection: ScopedQuota<CallSessionID>?) {
        self.holding = holding
        self.connection = connection
    }

    func reserve(_ bytes: Int) -> Bool {
        if let connection, !connection.quota.reserve(bytes) { return false }
        guard holding.reserveBytes(bytes) != nil else { return true }
        connection?.quota.release(bytes)
        return false
    }

    func release(_ bytes: Int) {
        connection?.quota.release(bytes)
        holding.releaseBytes(bytes)
    }
}
