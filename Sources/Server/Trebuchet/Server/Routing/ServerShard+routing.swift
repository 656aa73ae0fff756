package import TrebuchetActors

/// Actors that live on one server of several.
extension ServerShard {
    /// Returns whether an actor may serve calls here. A suspended process may not have noticed that another server owns the actor
    /// by now and has changed it.
    package func isOwned(_ record: ActorRecord) -> Bool {
        // After shutdown no actor of several servers belongs to this one.
        router?.mayServe(record) ?? (context.router == nil)
    }

    func partition(of actor: String) -> Int { context.router?.partition(of: actor) ?? 0 }

    /// Indicates whether a response or another server waits for the current versions of streams.
    package var isAwaited: Bool { !responseBarriers.isEmpty || router?.isAwaited == true }

    /// Sends waiting responses after the turn, if any wait for streams of the connection.
    package func scheduleReadyResponses(of connection: ServerConnection) {
        guard !responseBarriers.isEmpty else { return }
        reactor.execute { self.sendReadyResponses(of: connection) }
    }

    /// Moves the streams of actors that have left this server to their next owner.
    package func moveStreams(of actors: Set<ActorName>) {
        for connection in Array(connections.values) where connection.hasMovableStreams {
            connection.moveStreams(of: actors)
        }
        router?.moveStreams(of: actors)
    }
}
