internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// Who is told what happens at a server, and what it counts.
extension TrebuchetServer {
    /// How long a reactor may take to say what it has counted.
    static let answerTime = Duration.seconds(2)

    /// Tells somebody what happens from now on, until the server has ended or `removeListener`. Who is added twice is told once.
    public func addListener(_ listener: any ServerListener) { parts.events.add(listener) }

    /// Tells somebody nothing more; what is being told at the moment may still come.
    public func removeListener(_ listener: any ServerListener) { parts.events.remove(listener) }

    /// Which part of the calls that come without a trace begin one, from 0, the default, to 1. It matters only while somebody listens for spans
    /// (`ServerEvent.Kinds.spans`), as an `OTLPExporter` does; calls that bring a trace along are part of that.
    public func sampleTraces(_ ratio: Double) { parts.events.sampling.set(ratio) }

    /// All that the server has counted, in the text format of Prometheus (`text/plain; version=0.0.4`): what `/metrics` of the
    /// operators' address shows. `Docs/Observability.md` has the names.
    ///
    /// Throws `unavailable` when a reactor does not answer within 2 seconds: numbers without its own would be wrong.
    public func metrics() async throws(TrebuchetError) -> String {
        try await metricList().text()
    }

    /// The same as numbers.
    func metricList() async throws(TrebuchetError) -> MetricList {
        var list = MetricList()
        async let isReady = self.isReady
        let now = MonotonicClock.now
        for shard in shards {
            let part = await Self.ask(shard.reactor, within: Self.answerTime) {
                let turns = shard.reactor.turns
                return ReactorPart(
                    counts: shard.counts.sum, connections: shard.clientCount, waiting: shard.waitingCount,
                    reactor: MetricList.Reactor(
                        name: shard.reactor.name, turns: turns.count, busySeconds: Double(turns.busy) / 1e9,
                        longestTurnSeconds: Double(turns.longest(at: now)) / 1e9, stalls: shard.reactor.stallCount))
            }
            guard let part else { throw TrebuchetError(.unavailable, "\(shard.reactor.name) does not answer") }
            list.counts.add(part.counts)
            list.now.connections += part.connections
            list.now.callsWaiting += part.waiting
            list.now.reactors.append(part.reactor)
        }
        let rare = parts.events.rareCounts
        list.counts.add(refusals: rare.limits)
        list.refusals = rare.refusals
        list.now.isReady = await isReady
        list.now.streams = parts.shares.count(.streams)
        list.now.actors = actorCount
        list.now.actorsUnloadable = parts.loads.count
        list.now.actorsOnDemand = parts.shares.count(.actorsOnDemand)
        list.now.keptAnswers = rememberedAnswerCount
        list.now.heldBytes = heldBytes
        list.now.heldLimit = parts.memory.limit
        if let nodes = parts.nodes {
            let (taken, lost) = nodes.watch.counts
            list.now.cluster = MetricList.Cluster(
                slots: nodes.member.slotCount, nodes: nodes.member.liveNodes.count,
                isEngineThere: nodes.member.trouble == nil, taken: taken, lost: lost)
        }
        return list
    }

    private struct ReactorPart: Sendable {
        let counts: CountSum
        let connections: Int
        let waiting: Int
        let reactor: MetricList.Reactor
    }

    /// Asks a reactor something; nil when it does not answer in time.
    static func ask<Answer: Sendable>(
        _ reactor: Reactor, within limit: Duration, _ question: @escaping @Sendable () -> Answer
    ) async -> Answer? {
        await answer(within: limit) { answer in reactor.execute { answer(question()) } }
    }

    /// What `begin` has somebody answer; nil when that is not in time.
    static func answer<Answer: Sendable>(
        within limit: Duration, _ begin: (@escaping @Sendable (Answer?) -> Void) -> Void
    ) async -> Answer? {
        await withCheckedContinuation { continuation in
            let asker = Asker(continuation)
            // Not a timer of the reactor, which may be the one that does not get on.
            let patience = Task {
                try? await Task.sleep(for: limit)
                asker.answer(nil)
            }
            begin { answer in
                asker.answer(answer)
                patience.cancel()
            }
        }
    }

    /// Takes the first answer.
    private final class Asker<Answer: Sendable>: Sendable {
        private let continuation: Mutex<CheckedContinuation<Answer?, Never>?>

        init(_ continuation: CheckedContinuation<Answer?, Never>) { self.continuation = Mutex(continuation) }

        func answer(_ answer: Answer?) {
            let continuation = continuation.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
            continuation?.resume(returning: answer)
        }
    }
}
