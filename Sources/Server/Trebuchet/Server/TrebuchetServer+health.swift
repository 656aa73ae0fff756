internal import Networking
internal import Synchronization
internal import TrebuchetActors

/// Readiness and liveness of a server, for load balancers and supervisors.
extension TrebuchetServer {
    /// The result of one health check.
    public struct Check: Sendable, Equatable {
        /// `server`, `reactors`, `store`, `cluster` or `accounts`.
        public let name: String
        /// The problem; nil if the check passes.
        public let failureReason: String?
    }

    /// Returns the readiness checks; the server is ready if no check has a problem. Checks that do not apply are omitted.
    ///
    /// - `server`: it serves and is not shutting down.
    /// - `reactors`: all reactors respond.
    /// - `store`: the store can be read, and the last write succeeded.
    /// - `cluster`: the coordination store has confirmed the server, and no data was lost.
    /// - `accounts`: the accounts are available.
    ///
    /// `/readyz`, `trebuchet_ready` and the log use the same checks. An outage of the coordination store shorter than a lease is no
    /// problem. Takes at most 2 seconds if a component does not respond.
    public func readiness() async -> [Check] {
        // Run the checks concurrently, since each may take the whole timeout.
        async let reactors = liveness()
        async let storeCheck = storeProblem
        var checks = [Check(name: "server", failureReason: servingProblem), await reactors]
        if let storeCheck = await storeCheck { checks.append(Check(name: "store", failureReason: storeCheck.problem)) }
        if let router = context.router { checks.append(Check(name: "cluster", failureReason: await router.problem())) }
        if let problem = access.accountsProblem { checks.append(Check(name: "accounts", failureReason: problem())) }
        return checks
    }

    /// Indicates whether no check of `readiness` has a problem.
    var isReady: Bool { get async { await readiness().allSatisfy { $0.failureReason == nil } } }

    /// Returns the liveness check `reactors`, which passes if all reactors respond. A process that fails it should be restarted.
    /// Takes at most 2 seconds.
    public func liveness() async -> Check {
        let unresponsive = await eachShard { await Self.query($0.reactor, timeout: Self.answerTime, { true }) == nil }
        let names = zip(shards, unresponsive).filter(\.1).map(\.0.reactor.name)
        return Check(
            name: "reactors",
            failureReason: names.isEmpty
                ? nil : "\(names.joined(separator: ", ")): no response within \(Self.answerTime)")
    }

    /// Queries all shards concurrently; returns the answers in their order.
    private func eachShard<Answer: Sendable>(
        _ question: @escaping @Sendable (ServerShard) async -> Answer
    ) async -> [Answer] {
        await withTaskGroup(of: (Int, Answer).self) { group in
            for (index, shard) in shards.enumerated() { group.addTask { (index, await question(shard)) } }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private var servingProblem: String? {
        switch status {
        case .idle: "not listening yet"
        case .serving: isLeaving.load(ordering: .relaxed) ? "shutdown requested" : nil
        case .draining: "draining"
        case .stopped: "shut down"
        }
    }

    /// The problem of the store; nil without a store.
    private var storeProblem: (problem: String?, Void)? {
        get async {
            guard let store = context.probedStore.withLock({ $0 }) else { return nil }
            async let failures = eachShard { shard in
                await Self.query(shard.reactor, timeout: Self.answerTime) { shard.stateWriter?.failure } ?? nil
            }
            async let unread = Self.problem(of: store)
            let problem = await unread
            let failure = await failures.lazy.compactMap { $0 }.first
            return (failure.map { "the last write failed: \($0)" } ?? problem, ())
        }
    }

    private static func problem(of store: any StateStore) async -> String? {
        let answer: String?? = await FirstReply.wait(within: answerTime) { answer in
            Task {
                do throws(StateStoreError) {
                    _ = try await store.get([StateKey("trebuchet.health", "probe")])
                } catch {
                    return answer("it cannot be read: \(error)")
                }
                do throws(StateStoreError) {
                    try await (store as? any FileBackedStore)?.checkFileLocation()
                    answer(.some(nil))
                } catch {
                    answer("\(error)")
                }
            }
        }
        return answer ?? "it cannot be read: no response within \(answerTime)"
    }
}
