/// How much of what changes in a turn may be encoded at once.
///
/// States that change several times in a turn reach their subscribers version by version while all of them together stay below
/// `perTurn`; beyond it, versions of the same turn are skipped.
enum EagerBytes {
    static let perTurn = 64 << 10
    /// What an update counts at least, so that a turn holds no more than 32 of them.
    static let leastPerUpdate = 2 << 10
}
