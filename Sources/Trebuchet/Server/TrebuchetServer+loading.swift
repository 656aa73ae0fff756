internal import Distributed
internal import TrebuchetActors

/// Loading of persisted states before the first call.
extension TrebuchetServer {
    /// Loads an exposed actor.
    ///
    /// - Returns: true if the actor is active.
    func load(_ name: ActorName) async -> Bool {
        await (try? directory.activate(name, for: nil)?.value) != nil
    }

    /// Retries to load an actor until that succeeds, its name is another actor's, or the server ends.
    func keepLoading(_ name: ActorName) {
        Task { [weak self] in
            var pause = Duration.seconds(1)
            while true {
                try? await Task.sleep(for: pause)
                guard let self, !isStopping, directory.isUnloaded(name), await !load(name) else { return }
                pause = min(pause * 2, LoadFailures.patience)
            }
        }
    }

    /// Logs that persistable states are only in memory, at a cluster node without its own store: the node persists the states of
    /// cluster actors only. A server without any store does not log it.
    func warnOfMemory<A: DistributedActor>(_ type: A.Type, as name: String) {
        guard parts.nodes != nil, locals.persists(type) else { return }
        parts.logAt(
            .warning,
            "actor '\(name)' has persisted states, but this node has no store for its node-local actors: the states are lost when the "
                + "process ends; pass a store (trebuchet serve --data FILE), or expose the actor by a pattern with "
                + "placement: .cluster")
    }
}
