internal import Synchronization
internal import TrebuchetWire

/// The actors of a client whose references it has exported. Its server may call only these.
///
/// The identity, by which the server recognizes the client over another connection, is a secret: only `hello` messages contain
/// it, and no description does.
package final class ExportedActors: Sendable {
    /// The mutable state, guarded by a lock.
    private struct State {
        var identity: String?
        var names: Set<ActorName> = []
        /// Set if the server has announced that it accepts no references.
        var isRefused = false
    }

    private let state = Mutex(State())

    package init() {}

    /// The identity of the client; nil until the first reference is exported.
    package var identity: String? { state.withLock { $0.identity } }

    func insert(_ name: ActorName) {
        state.withLock { state in
            state.names.insert(name)
            guard state.identity == nil else { return }
            var random = SystemRandomNumberGenerator()
            state.identity = (0..<2).map { _ in
                let digits = String(random.next() as UInt64, radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }.joined()
        }
    }

    package func contains(_ name: ActorName) -> Bool { state.withLock { $0.names.contains(name) } }

    func remove(_ name: ActorName) { state.withLock { _ = $0.names.remove(name) } }

    /// Applies the terms that the server has announced.
    package func applyTerms(_ terms: AdvertisedLimits) {
        state.withLock { $0.isRefused = terms.clientActorsPerClient == 0 }
    }

    /// Returns the error for an actor whose name must not be sent. Returns nil if the name may be sent, and until the server's
    /// terms are known.
    func refusal(of id: TrebuchetActorID) -> TrebuchetError? {
        guard state.withLock({ $0.isRefused }) else { return nil }
        return TrebuchetError(
            .invalidArguments,
            "actor '\(id)' lives in a client, and the server accepts no client actors: it is an older version, or sets 0 for "
                + "ServerLimits.clientActors.perClient")
    }
}
