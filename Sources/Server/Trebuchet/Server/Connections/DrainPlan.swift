/// The schedule for sending `goAway` to the clients of one reactor: it spreads the load on this server and on the servers that the
/// clients connect to next. A pure value.
struct DrainPlan: Equatable {
    /// The time between two batches.
    static let interval = Duration.milliseconds(10)
    /// The smallest batch worth a timer.
    private static let smallestBatch = 100
    private static let shortestSpread = 2_000
    private static let maximumSpread = 30_000

    /// The number of clients that receive `goAway` in one turn.
    let batch: Int
    /// The interval over which clients reconnect: a thousand a second for each reactor, within the bounds of 2 and 30 seconds.
    let spreadMilliseconds: Int

    /// - Parameter time: The time within which all clients receive `goAway`.
    init(clients: Int, within time: Duration) {
        let batches = max(1, Int(time / Self.interval))
        batch = max(Self.smallestBatch, (clients + batches - 1) / batches)
        spreadMilliseconds = min(max(clients, Self.shortestSpread), Self.maximumSpread)
    }
}
