internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors

/// Event listeners and metrics of a server.
extension TrebuchetServer {
    /// The time limit for a reactor to report its counters.
    static let answerTime = Duration.seconds(2)

    /// Delivers events to a listener until the server ends or `removeEventHandler` is called. Adding a listener twice has no
    /// effect.
    public func addEventHandler(_ listener: any ServerEventHandler) { context.events.addHandler(listener) }

    /// Stops delivery to a listener; an event that is being delivered may still arrive.
    public func removeEventHandler(_ listener: any ServerEventHandler) { context.events.removeHandler(listener) }

    /// Sets the sampling ratio for calls without a parent trace, from 0, the default, to 1. It has an effect only with a
    /// listener for spans (`ServerEvent.Kinds.spans`), such as an `OTLPExporter`. Calls with a parent trace belong to that
    /// trace.
    public func setTraceSamplingRatio(_ ratio: Double) { context.events.sampling.set(ratio) }

    /// Returns all metrics in the text format of Prometheus (`text/plain; version=0.0.4`), as served at `/metrics` of the admin
    /// endpoint. `Docs/Reference/Metrics.md` has the names.
    ///
    /// Throws `unavailable` if a reactor does not respond within 2 seconds, since totals without its counters would be wrong.
    public func prometheusMetrics() async throws(TrebuchetError) -> String {
        try await metricList().text()
    }

    /// Returns all metrics as numbers.
    func metricList() async throws(TrebuchetError) -> MetricList {
        var list = MetricList()
        async let isReady = self.isReady
        let now = MonotonicClock.now
        for shard in shards {
            let part = await Self.query(shard.reactor, timeout: Self.answerTime) {
                let turns = shard.reactor.turns
                return ReactorReport(
                    counts: shard.counts.sum, connections: shard.clientCount, waiting: shard.waitingCount,
                    reactor: MetricList.Reactor(
                        name: shard.reactor.name, turns: turns.count, busySeconds: Double(turns.busy) / 1e9,
                        longestTurnSeconds: Double(turns.longest(at: now)) / 1e9, stalls: shard.reactor.stallCount))
            }
            guard let part else { throw TrebuchetError(.unavailable, "\(shard.reactor.name) does not respond") }
            list.counts.merge(part.counts)
            list.now.connections += part.connections
            list.now.callsWaiting += part.waiting
            list.now.reactors.append(part.reactor)
        }
        let rejections = context.events.rejectionCounts
        list.counts.addRejections(rejections.limits)
        list.refusals = rejections.refusals
        list.httpRequests = context.events.httpRequestCounts
        list.now.isReady = await isReady
        list.now.streams = context.quotas.count(.streams)
        list.now.actors = actorCount
        list.now.actorsUnloadable = context.loads.count
        list.now.actorsOnDemand = context.quotas.count(.actorsOnDemand)
        list.now.recordedResponses = rememberedAnswerCount
        list.now.bufferedBytes = bufferedBytes
        list.now.bufferedLimit = context.memory.limit
        list.now.router = context.router?.metrics ?? []
        return list
    }

    /// The counters of one reactor.
    private struct ReactorReport: Sendable {
        let counts: MetricTotals
        let connections: Int
        let waiting: Int
        let reactor: MetricList.Reactor
    }

    /// Runs a query on a reactor; returns nil if it does not respond in time.
    static func query<Answer: Sendable>(
        _ reactor: Reactor, timeout limit: Duration, _ question: @escaping @Sendable () -> Answer
    ) async -> Answer? {
        await FirstReply.wait(within: limit) { reply in reactor.execute { reply(question()) } }
    }
}
