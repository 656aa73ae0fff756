internal import Distributed
internal import Platform
internal import TrebuchetActors

/// Loading of persisted states before the first call.
extension TrebuchetServer {
    /// Loads an exposed actor. Returns the error of its calls if that fails.
    func load(_ name: ActorName) async -> TrebuchetError? {
        do {
            _ = try await directory.activate(name, for: nil)?.value
            return nil
        } catch {
            let cause = CallerRefusal.cause(of: error)
            return cause as? TrebuchetError ?? TrebuchetError(.internal, "\(cause)")
        }
    }

    /// The delays between attempts to load an actor that is exposed by its name.
    private static let loadBackoff = Backoff(first: .seconds(1), limit: .seconds(10))

    /// Retries to load an actor until that succeeds, the name is exposed again, or the server ends.
    func retryLoading(_ name: ActorName, _ registration: ActorDirectory.Registration) {
        Task { [weak self] in
            var failures = 1
            while true {
                try? await Task.sleep(for: Self.loadBackoff.delay(afterFailures: failures))
                guard let self, !isStopping, directory.isUnloaded(name, registration), await load(name) != nil else {
                    return
                }
                failures += 1
            }
        }
    }

    /// Logs that persistable states are only in memory, at a server of a cluster without its own store: the coordination store has
    /// the states of cluster actors only. A server without any store does not log it.
    func warnOfMemory<A: TrebuchetActor>(_ type: A.Type, as name: String) {
        guard context.router != nil, locals.persists(type) else { return }
        context.logAt(
            .warning,
            "actor '\(name)' has persisted states, but this server has no store for its own actors: the states are lost when the "
                + "process ends; pass a store (trebuchet serve --data FILE), or expose the actor by a pattern with "
                + "placement: .cluster")
    }
}
