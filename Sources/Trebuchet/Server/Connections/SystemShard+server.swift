internal import TrebuchetActors

extension SystemShard {
    /// What the server has on this reactor.
    var serverShard: ServerShard? {
        // Nobody but a server writes it.
        server.map { unsafeDowncast($0, to: ServerShard.self) }
    }
}

extension ActorRecord {
    /// Gives up its place among the actors made on demand.
    func giveBackStake() {
        // Nobody but a server writes it.
        if let stake { unsafeDowncast(stake, to: Stake.self).giveBack() }
    }
}
