internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// Whether a server is well, for who sends it clients or starts it again.
extension TrebuchetServer {
    /// One thing that a server needs to serve.
    public struct Check: Sendable, Equatable {
        /// `server`, `reactors`, `store`, `cluster` or `accounts`.
        public let name: String
        /// What is wrong with it; nil when nothing is.
        public let problem: String?
    }

    /// Whether the server is to be sent clients: it serves and is not to end, its reactors get on, its store can be read and has taken
    /// what was written last, its node of a cluster is confirmed by the engine and has lost nothing, and its accounts are there. It is when
    /// no check has a problem. What is not there is not checked.
    ///
    /// `/readyz`, `trebuchet_ready` and the log say the same. An engine that is away for less than a lease is no problem. It takes up to 2
    /// seconds where something does not answer.
    public func readiness() async -> [Check] {
        // All at once: each may have to be waited for.
        async let reactors = liveness()
        async let kept = storeProblem
        var checks = [Check(name: "server", problem: servingProblem), await reactors]
        if let kept = await kept { checks.append(Check(name: "store", problem: kept.problem)) }
        if let nodes = parts.nodes { checks.append(Check(name: "cluster", problem: await nodes.problem())) }
        if let problem = access.accountsProblem { checks.append(Check(name: "accounts", problem: problem())) }
        return checks
    }

    /// Whether no check of `readiness` has a problem.
    var isReady: Bool { get async { await readiness().allSatisfy { $0.problem == nil } } }

    /// Whether the process gets on, as `reactors`: one that does not is best started again. It takes up to 2 seconds.
    public func liveness() async -> Check {
        let held = await eachShard { await Self.ask($0.reactor, within: Self.answerTime, { true }) == nil }
        let names = zip(shards, held).filter(\.1).map(\.0.reactor.name)
        return Check(
            name: "reactors",
            problem: names.isEmpty ? nil : "\(names.joined(separator: ", ")): no answer in \(Self.answerTime)")
    }

    /// Asks all at once; the answers in their order.
    private func eachShard<Answer: Sendable>(
        _ question: @escaping @Sendable (ServerShard) async -> Answer
    ) async -> [Answer] {
        await withTaskGroup(of: (Int, Answer).self) { group in
            for (place, shard) in shards.enumerated() { group.addTask { (place, await question(shard)) } }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private var servingProblem: String? {
        switch status {
        case .idle: "it does not listen yet"
        case .serving: isLeaving.load(ordering: .relaxed) ? "it is to end" : nil
        case .draining: "it is ending"
        case .stopped: "it has ended"
        }
    }

    /// Nil without a store.
    private var storeProblem: (problem: String?, Void)? {
        get async {
            guard let store = parts.probedStore.withLock({ $0 }) else { return nil }
            async let failures = eachShard { shard in
                await Self.ask(shard.reactor, within: Self.answerTime) { shard.stateWriter?.failure } ?? nil
            }
            async let unread = Self.problem(of: store)
            let problem = await unread
            let failure = await failures.lazy.compactMap { $0 }.first
            return (failure.map { "what was written last failed: \($0)" } ?? problem, ())
        }
    }

    private static func problem(of store: any StateStore) async -> String? {
        let answer: String?? = await answer(within: answerTime) { answer in
            Task {
                do throws(StateStoreError) {
                    _ = try await store.get([StateKey("trebuchet.health", "probe")])
                } catch {
                    return answer("it cannot be read: \(error)")
                }
                do throws(StateStoreError) {
                    try await (store as? any PlacedStore)?.checkPlace()
                    answer(.some(nil))
                } catch {
                    answer("\(error)")
                }
            }
        }
        return answer ?? "it cannot be read: no answer in \(answerTime)"
    }
}
