/// The placement of the actors of a pattern.
public enum ActorPlacement: Sendable {
    /// Each server has a separate actor per name.
    case node
    /// One server of a cluster has the actor of a name; without a cluster, the same as `node`.
    case cluster
}
