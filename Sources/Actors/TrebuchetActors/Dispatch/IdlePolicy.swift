/// The conditions for the deactivation of virtual actors.
package struct IdlePolicy: Sendable {
    /// The time without calls and streams.
    package let time: Duration
    /// Whether actors with a changed state that is not persisted are deactivated too.
    package let discards: Bool

    package init(time: Duration, discards: Bool) {
        self.time = time
        self.discards = discards
    }
}
