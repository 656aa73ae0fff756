internal import TrebuchetActors

/// What a connection's caller may do, as the server has said once. Nothing is kept of a refusal: whoever is given a right has it at once.
struct KeptGrants {
    /// Of one connection; one more takes the place of the oldest.
    static let most = 16
    /// Bytes of a target that is kept; a client may ask for whatever it likes.
    static let longestTarget = 128

    private var grants: [(actor: ActorName, target: String)] = []
    private var oldest = 0
    /// By which rules they were given.
    private var rules: UInt64 = 0

    /// Whether a grant is there that was given by these rules; those of others are forgotten.
    mutating func contains(_ actor: ActorName, _ target: String, by rules: UInt64) -> Bool {
        guard self.rules == rules else {
            (grants, oldest, self.rules) = ([], 0, rules)
            return false
        }
        return grants.contains { $0.actor == actor && $0.target.utf8.elementsEqual(target.utf8) }
    }

    /// - Parameter rules: those of before it was asked for.
    mutating func add(_ actor: ActorName, _ target: String, by rules: UInt64) {
        guard self.rules == rules, !actor.isTooLong, target.utf8.count <= Self.longestTarget else { return }
        guard grants.count == Self.most else { return grants.append((actor, target)) }
        grants[oldest] = (actor, target)
        oldest = (oldest + 1) % Self.most
    }
}
