internal import Distributed
internal import TrebuchetActors

/// Actors whose states have to be loaded before they are called.
extension TrebuchetServer {
    /// - Returns: whether the actor stands ready.
    func load(_ name: ActorName) async -> Bool {
        await (try? directory.activate(name, for: nil)?.value) != nil
    }

    /// Tries again to load an actor until that succeeds, its name is another's, or the server ends.
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

    /// Says that states which are to be persisted are in memory alone. A server without any store promises nothing else; a node keeps
    /// those of other actors.
    func warnOfMemory<A: DistributedActor>(_ type: A.Type, as name: String) {
        guard parts.nodes != nil, locals.persists(type) else { return }
        parts.logAt(
            .warning,
            "'\(name)' has persisted states, and this node has no store for actors of its own: they are in memory and gone when the "
                + "process ends; give the server a store (trebuchet serve --data FILE), or expose it by a pattern with "
                + "placement: .cluster")
    }
}
