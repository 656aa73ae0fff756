/// What letting go of an actor would lose of one of its streams.
struct StreamUsage {
    /// Whether the state is another than it was in the beginning.
    let hasChanged: Bool
    /// Whether somebody observes it, or did and may come back.
    let isObserved: Bool
}
