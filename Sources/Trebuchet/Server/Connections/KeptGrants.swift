internal import TrebuchetActors

/// What a connection's caller may do, as the server has said once. Nothing is kept of a refusal: whoever is given a right has it at once.
final class KeptGrants {
    /// What a grant holds for: it is no more once one of these has changed.
    struct Basis: Equatable {
        /// Of the server's `rulesDidChange`.
        var rules: UInt64 = 0
        /// Of the connection's `principal`: another may have signed in.
        var principal: UInt64 = 0
    }

    /// Of one connection; one more takes the place of the oldest.
    static let most = 16
    /// Bytes of an actor's name and a target together that are kept, as a client may ask for whatever it likes: all of a connection's are
    /// less than what is not counted as held.
    static let longest = 192

    /// What the last permission was given for, until the call is noted that has it.
    private var permission: Basis?
    private var grants: [(actor: ActorName, target: String)] = []
    private var oldest = 0
    private var basis = Basis()

    func notePermission(on basis: Basis) { permission = basis }

    /// What the call that is just noted was permitted for.
    func takePermission() -> Basis? {
        defer { permission = nil }
        return permission
    }

    /// Whether a grant is there that holds on this basis; those of another one are forgotten.
    func contains(_ actor: ActorName, _ target: String, on basis: Basis) -> Bool {
        guard self.basis == basis else {
            (grants, oldest, self.basis) = ([], 0, basis)
            return false
        }
        return grants.contains { $0.actor == actor && $0.target.utf8.elementsEqual(target.utf8) }
    }

    /// - Parameter basis: as it was before the grant was asked for.
    func add(_ actor: ActorName, _ target: String, on basis: Basis) {
        guard self.basis == basis, actor.text.utf8.count + target.utf8.count <= Self.longest else { return }
        guard grants.count == Self.most else { return grants.append((actor, target)) }
        grants[oldest] = (actor, target)
        oldest = (oldest + 1) % Self.most
    }
}
