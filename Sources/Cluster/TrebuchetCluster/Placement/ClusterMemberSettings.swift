internal import Platform

/// The durations and limits of a node's ownership of slots. Nodes of one cluster have the same.
public struct ClusterMemberSettings: Hashable, Sendable {
    /// The duration of a lease without renewal, and of a node's liveness. After the death of a node, its slots have no
    /// owner for this time. Default 5 s.
    public var leaseDuration = Duration.seconds(5)
    /// The time before the end of its lease at which a node stops owning a slot, for clock drift; less than half of
    /// the lease. Default 500 ms.
    public var leaseMargin = Duration.milliseconds(500)
    /// The interval at which a node reads the live nodes, and acquires and hands over slots. Default 250 ms.
    public var roundInterval = Duration.milliseconds(250)
    /// The time after a new connection to the coordination store in which nodes that were live before still count as live. Their
    /// slots are not acquired: they may be about to connect to the server too, or still write to a former primary. Default 5 s.
    public var reconnectionGrace = Duration.seconds(5)
    /// The maximum number of slots in handover at once when other nodes join; the next follow after these. A draining node
    /// hands over twice as many for each other node, or all if there is none. Default 32.
    public var concurrentHandovers = 32
    /// The maximum duration of `SlotRebalanceListener.slotWillBeRevoked`; after it the slot is handed over
    /// nevertheless. Default 5 s.
    public var handoverTimeout = Duration.seconds(5)
    /// The maximum number of concurrent requests to the coordination store. Default 128.
    public var requestsInFlight = 128

    /// Creates the default settings.
    public init() {}

    func check() throws(ClusterEngineError) {
        _ = try ClusterEngineLimits.milliseconds(leaseDuration)
        guard leaseMargin >= .zero, leaseMargin * 2 < leaseDuration, roundInterval > .zero,
            roundInterval * 4 <= leaseDuration - leaseMargin, handoverTimeout >= .zero, reconnectionGrace >= .zero,
            concurrentHandovers > 0, requestsInFlight > 0
        else {
            throw ClusterEngineError(
                .invalid,
                "ClusterMemberSettings: leaseMargin must be less than half of leaseDuration, roundInterval at most a quarter of "
                    + "the difference of both, and roundInterval, concurrentHandovers and requestsInFlight greater than 0"
            )
        }
    }
}
