package import TrebuchetActors

extension SystemShard {
    /// The server's shard on this reactor.
    package var serverShard: ServerShard? {
        // Only a server writes it, and always a `ServerShard`.
        server.map { unsafeDowncast($0, to: ServerShard.self) }
    }
}

extension ActorRecord {
    /// Releases its reservation among the activated actors.
    package func releaseReservation() {
        // Only a server writes it, and always a `QuotaReservation`.
        if let reservation { unsafeDowncast(reservation, to: QuotaReservation.self).release() }
    }
}
