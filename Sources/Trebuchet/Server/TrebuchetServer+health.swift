internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// Whether a server is well, for who sends it clients or starts it again.
extension TrebuchetServer {
    /// One thing that a server needs to serve.
    public struct Check: Sendable, Equatable {
        /// `server`, `reactors`, `store` or `cluster`.
        public let name: String
        /// What is wrong with it; nil when nothing is.
        public let problem: String?
    }

    /// Whether the server is to be sent clients: it serves and is not to end, its reactors get on, its store can be read and has taken
    /// what was written last, and the cluster's engine answers. It is when no check has a problem. What is not there is not checked.
    ///
    /// It takes up to 2 seconds where something does not answer.
    public func readiness() async -> [Check] {
        var checks = [Check(name: "server", problem: servingProblem)]
        checks.append(await liveness())
        if let store = parts.probedStore.withLock({ $0 }) {
            checks.append(Check(name: "store", problem: await problem(of: store)))
        }
        if let nodes = parts.nodes {
            checks.append(Check(name: "cluster", problem: nodes.member.trouble.map { "the engine: \($0.message)" }))
        }
        return checks
    }

    /// Whether the process gets on, as `reactors`: one that does not is best started again.
    public func liveness() async -> Check {
        var held: [String] = []
        for shard in shards {
            if await Self.ask(shard.reactor, within: Self.answerTime, { true }) == nil {
                held.append(shard.reactor.name)
            }
        }
        return Check(
            name: "reactors",
            problem: held.isEmpty ? nil : "\(held.joined(separator: ", ")): no answer in \(Self.answerTime)")
    }

    private var servingProblem: String? {
        switch status {
        case .idle: "it does not listen yet"
        case .serving: isLeaving.load(ordering: .relaxed) ? "it is to end" : nil
        case .draining: "it is ending"
        case .stopped: "it has ended"
        }
    }

    private func problem(of store: any StateStore) async -> String? {
        for shard in shards {
            let failure = await Self.ask(shard.reactor, within: Self.answerTime) { shard.stateWriter?.failure }
            if let failure, let failure { return "what was written last failed: \(failure)" }
        }
        do {
            try await TimeLimit.run(Self.answerTime, on: shards[0].reactor) {
                _ = try await store.get([StateKey("trebuchet.health", "probe")])
            }
            return nil
        } catch {
            return "it cannot be read: \(error)"
        }
    }
}
