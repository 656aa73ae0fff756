/// The conditions for the deactivation of virtual actors.
package struct IdlePolicy: Sendable {
    /// The time without calls and streams.
    package let time: Duration
    /// Whether an actor is deactivated even if a state has changed that is not persisted.
    package let discards: Bool

    package init(time: Duration, discards: Bool) {
        self.time = time
        self.discards = discards
    }
}
