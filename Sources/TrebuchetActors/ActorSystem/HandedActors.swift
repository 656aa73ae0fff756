internal import Synchronization
internal import TrebuchetWire

/// The actors of a client to which it has handed over references: its server may call these, and no others.
///
/// The identity, by which the server knows the client again over another connection, is a secret: it stands in no message but
/// `hello`, and in no text.
package final class HandedActors: Sendable {
    private struct State {
        var identity: String?
        var names: Set<ActorName> = []
        /// Whether the server has said that it takes no references.
        var isRefused = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Set once a reference was handed over.
    package var identity: String? { state.withLock { $0.identity } }

    func add(_ name: ActorName) {
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

    /// The server has said what it takes.
    package func heard(_ terms: ServerTerms) { state.withLock { $0.isRefused = terms.clientActorsPerClient == 0 } }

    /// Why the actor's name is not to be sent; nil when it may be, and as long as that is not known.
    func refusal(of id: TrebuchetActorID) -> TrebuchetError? {
        guard state.withLock({ $0.isRefused }) else { return nil }
        return TrebuchetError(
            .invalidArguments,
            "actor '\(id)' lives in a client, and the server takes no references to such: it is an older one, or has 0 as "
                + "ServerLimits.clientActorsPerClient")
    }
}
