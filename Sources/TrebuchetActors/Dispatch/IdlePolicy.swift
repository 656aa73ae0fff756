/// When actors that were made on demand go.
package struct IdlePolicy: Sendable {
    /// Without calls and streams.
    package let time: Duration
    /// Also when a state has changed that no store keeps.
    package let discards: Bool

    package init(time: Duration, discards: Bool) {
        self.time = time
        self.discards = discards
    }
}
