internal import Platform

/// How a node owns slots: for how long, and how many it gives away at once. Nodes of one cluster have the same.
public struct ClusterMemberSettings: Hashable, Sendable {
    /// How long a lease lasts that is not renewed, and how long a node counts as alive: so long the slots of a node that died have no
    /// owner. Default 5 s.
    public var leaseDuration = Duration.seconds(5)
    /// So long before the end of its lease a node stops owning a slot, for clocks that do not run alike; less than a half of the lease.
    /// Default 500 ms.
    public var leaseMargin = Duration.milliseconds(500)
    /// How often a node looks who lives, what it is to take, and what to give away. Default 250 ms.
    public var roundInterval = Duration.milliseconds(250)
    /// Slots that a node gives away at once when others come; the next follow when they are gone. Default 32.
    public var handoversAtOnce = 32
    /// How long `SlotRebalanceListener.slotWillBeRevoked` may take; then the slot is given away all the same. Default 5 s.
    public var handoverTimeout = Duration.seconds(5)
    /// Questions to the engine at once. Default 128.
    public var requestsInFlight = 128

    /// The defaults.
    public init() {}

    func check() throws(ClusterEngineError) {
        _ = try ClusterEngineLimits.milliseconds(leaseDuration)
        guard leaseMargin >= .zero, leaseMargin * 2 < leaseDuration, roundInterval > .zero,
            roundInterval * 4 <= leaseDuration - leaseMargin, handoverTimeout >= .zero, handoversAtOnce > 0,
            requestsInFlight > 0
        else {
            throw ClusterEngineError(
                .invalid,
                "of ClusterMemberSettings the margin is less than a half of the lease, a round no longer than a quarter of what is left, "
                    + "and all others are more than nothing")
        }
    }
}
