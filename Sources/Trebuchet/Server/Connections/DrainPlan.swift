/// How the clients of one reactor are sent away, so that neither a server nor those that its clients turn to are hit by
/// all of them at once. Pure.
struct DrainPlan: Equatable {
    /// Between two batches.
    static let interval = Duration.milliseconds(10)
    /// Fewer are not worth a batch.
    private static let smallestBatch = 100
    private static let shortestSpread = 2_000
    private static let longestSpread = 30_000

    /// Clients that are told in one turn.
    let batch: Int
    /// Clients come back at times that are spread over this: a thousand a second of each reactor, as far as the bounds
    /// of 2 and 30 seconds let them.
    let spreadMilliseconds: Int

    /// - Parameter time: in which all are to be told.
    init(clients: Int, within time: Duration) {
        let batches = max(1, Int(time / Self.interval))
        batch = max(Self.smallestBatch, (clients + batches - 1) / batches)
        spreadMilliseconds = min(max(clients, Self.shortestSpread), Self.longestSpread)
    }
}
