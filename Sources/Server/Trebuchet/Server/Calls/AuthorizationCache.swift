internal import TrebuchetActors

/// The authorization cache of one connection. It records only positive decisions: a newly granted permission takes effect at once.
final class AuthorizationCache {
    /// The conditions of a decision. The decision is invalid once one of them has changed.
    struct Basis: Equatable {
        /// The count of the server's `invalidateAuthorizationCache` calls.
        var rules: UInt64 = 0
        /// The count of changes of the connection's `principal`.
        var principal: UInt64 = 0
    }

    /// The maximum number of decisions for one connection. A further one replaces the oldest.
    static let most = 16
    /// The maximum size in bytes of an actor name and a target that is cached, since a client chooses both. All entries of a
    /// connection fit into the memory that is not counted as buffered.
    static let longest = 192

    /// The conditions of the last permission, until the call that has it is recorded.
    private var permission: Basis?
    private var grants: [(actor: ActorName, target: String)] = []
    private var oldest = 0
    private var basis = Basis()

    func recordPermission(on basis: Basis) { permission = basis }

    /// Returns the conditions of the permission of the call that is being recorded, and clears them.
    func consumePermission() -> Basis? {
        defer { permission = nil }
        return permission
    }

    /// Returns whether a decision on this basis is cached. Removes the decisions on another basis.
    func contains(_ actor: ActorName, _ target: String, on basis: Basis) -> Bool {
        guard self.basis == basis else {
            (grants, oldest, self.basis) = ([], 0, basis)
            return false
        }
        return grants.contains { $0.actor == actor && $0.target.utf8.elementsEqual(target.utf8) }
    }

    /// - Parameter basis: The basis as it was before the decision.
    func storeGrant(_ actor: ActorName, _ target: String, on basis: Basis) {
        guard self.basis == basis, actor.text.utf8.count + target.utf8.count <= Self.longest else { return }
        guard grants.count == Self.most else { return grants.append((actor, target)) }
        grants[oldest] = (actor, target)
        oldest = (oldest + 1) % Self.most
    }
}
