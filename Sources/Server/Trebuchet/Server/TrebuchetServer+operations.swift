internal import Bytes
internal import Glibc
internal import Networking
internal import Platform
internal import Relays
internal import Synchronization
public import Transports
internal import TrebuchetActors
package import WebSockets

extension TrebuchetServer {
    /// Starts the server and runs it until SIGTERM or SIGINT, cancellation of the task, a call of `shutdown`, or an operator's
    /// stop of a server in a cluster (`trebuchet cluster drain`). Then it drains for at most 10 seconds, plus the time limit of `deactivate()` of its
    /// actors, and returns. A second signal ends the process at once, with a line in the log and 128 plus the signal's number as
    /// status: 130 for SIGINT, 143 for SIGTERM. SIGHUP reloads the certificates. If the server was shut down before, it returns at
    /// once.
    ///
    /// - Throws: The errors of `start`; in a cluster also, after an orderly end, the error of a coordination store that has lost data.
    public func run() async throws { try await run(shutdownOn: [.terminate, .interrupt]) }

    /// Starts the server and runs it with other signals and another drain time. With none (`[]`) the program handles all signals,
    /// including SIGHUP.
    ///
    /// - Parameters:
    ///   - delay: The time to keep serving, as in `shutdown`; none by default.
    ///   - drain: The maximum time for in-flight calls, as in `shutdown`; 10 seconds by default.
    public func run(
        shutdownOn signals: Set<ProcessSignal>, delay: Duration = .zero, drain: Duration = .seconds(10)
    ) async throws {
        // Before it listens, so that an early signal also ends it in order.
        let isToHangUp = !signals.isEmpty && !signals.contains(.hangUp)
        let signals =
            signals.isEmpty ? nil : ShutdownSignals(signals, secondSignalLoss: Self.secondSignalLoss, log: context.log)
        defer { signals?.restoreHandlers() }
        if isToHangUp { signals?.onHangUp { [weak self] in self?.hangUp() } }
        if address == nil, !isStopping { context.log("listening on \(try await start())") }
        signals?.onFirst { await self.shutdown(delay: delay, drain: drain) }
        let stop = Task {
            guard let router = context.router else { return }
            await router.waitForStopRequest()
            guard !Task.isCancelled else { return }
            context.log("shutting down at an operator's request")
            await shutdown(delay: delay, drain: drain)
        }
        let end = Task {
            guard let router = context.router else { return }
            await router.waitForFailure()
            guard !Task.isCancelled, router.failure != nil else { return }
            context.logAt(.error, "shutting down because calls can no longer be routed to other servers")
            // Calls that wait for an owner cannot complete.
            await shutdown(drain: min(drain, .seconds(1)))
        }
        defer {
            stop.cancel()
            end.cancel()
        }
        for await isStopped in stopped.stream where isStopped { break }
        if !stopped.currentValue { await shutdown(drain: drain) }
        if let failure = context.router?.failure { throw failure }
    }

    private func hangUp() {
        guard hasTLS || context.router?.hasCertificateFiles == true else {
            return context.log("SIGHUP: no certificates to reload")
        }
        do throws(TransportError) {
            try reloadCertificates()
            context.log("SIGHUP: certificates reloaded")
        } catch {
            context.logAt(.error, "SIGHUP: keeping the current certificates: \(error.message)")
        }
    }

    /// The loss that a second signal causes, for the log.
    package static let secondSignalLoss =
        "in-flight calls get no response, deactivate() is not awaited, and states without a response to a caller may not "
        + "be persisted"

    /// Shuts down in steps: accepts no more connections, sends `goAway` to clients, completes in-flight calls and page transfers,
    /// and closes the connections with 1001. All of that takes at most `drain`, of which a server in a cluster first has up to three
    /// quarters to release its actors.
    ///
    /// In-flight calls that have not ended by then fail with `unknownOutcome`, or with `unavailable` when they have not begun. Calls
    /// that their clients repeat (`@Idempotent`) get their response at the next owner or process. Alarms whose methods have not
    /// ended are delivered again by the next process. Then `deactivate()` of all activated virtual actors runs, for at most
    /// 5 seconds, and states are written.
    ///
    /// - Parameters:
    ///   - delay: The time to keep serving while `readiness` already reports the end, so that a load balancer sends new clients to
    ///     other servers before this one drains. None by default. A cancelled task does not wait.
    ///   - drain: The maximum time for in-flight calls; 10 seconds by default. Zero ends them at once. A server in a cluster then
    ///     does not wait until its actors are released: other servers take them when its leases expire.
    public func shutdown(delay: Duration = .zero, drain: Duration = .seconds(10)) async {
        if !isLeaving.exchange(true, ordering: .relaxed) { context.events.emit(.serverDraining) }
        if delay > .zero, status == .serving { try? await Task.sleep(for: delay) }
        let listener = stopListener()
        // A separate task, so that cancellation of the caller does not prevent `goAway`.
        await Task {
            let began = MonotonicClock.now
            await listener?.stopAccepting()
            await listener?.refuseUpgrades()
            // Its clients continue meanwhile, at the next owners of their actors.
            await context.router?.drain(within: drain * 3 / 4)
            for scheduler in alarms { scheduler.stop() }
            let rest = max(.zero, drain - .nanoseconds(Int64(clamping: MonotonicClock.now - began)))
            await withTaskGroup(of: Void.self) { group in
                for shard in shards { group.addTask { await shard.drain(for: rest) } }
                // Calls over HTTP are answered when `drain` ends them.
                group.addTask { await listener?.endPages(within: rest > .zero ? rest + .seconds(1) : .zero) }
                for scheduler in alarms { group.addTask { await scheduler.stop(within: rest) } }
            }
            await context.router?.flush()
            await deactivateActors()
            for shard in shards {
                for writer in locals.writers(on: shard.states) {
                    await writer.flush()
                    // Later changes have not been confirmed to any caller, and the next server may own the store.
                    await shard.reactor.perform { writer.abandon() }
                }
            }
            await context.router?.endExchange()
            await closeEndpoints()
            context.events.emit(.serverStopped)
            releaseReferences()
            stopped.update(true)
        }.value
    }

    /// Cuts all connections at once, as if the process had crashed: no client is notified, no call is waited for, nothing is
    /// written.
    package func cut() async {
        let listener = stopListener()
        // First of all: other servers must not observe the teardown.
        context.router?.stopExchange()
        for scheduler in alarms { scheduler.stop() }
        await Task {
            await listener?.stopAccepting()
            await listener?.endPages(within: .zero)
            for shard in shards { await shard.reactor.perform { shard.cut() } }
            // Sockets are closed when a turn ends.
            for shard in shards { await shard.reactor.perform {} }
            // After the connections: a crashed server does not announce that it owns nothing.
            context.router?.stop()
            await closeEndpoints()
            releaseReferences()
            stopped.update(true)
        }.value
    }
}

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

/// Endpoints for operators: further listeners that end with the server.
extension TrebuchetServer {
    /// An open endpoint.
    struct Endpoint {
        let listener: WebSocketServer
        let shutDown: @Sendable () async -> Void
    }

    /// Opens an endpoint until the server ends, and returns its address.
    ///
    /// - Parameters:
    ///   - name: the name of the endpoint in errors. A server has one endpoint of each name.
    ///   - host: the requested host, for errors.
    ///   - isProtected: whether other machines may reach the endpoint.
    ///   - shutDown: ends the endpoint after its listener.
    /// - Throws: the error of `listen`; `addressInvalid` for an unprotected address that is not loopback, for a second endpoint of
    ///   the name and after the end.
    package func openEndpoint(
        _ name: String, at host: String, isProtected: Bool, shutDown: @escaping @Sendable () async -> Void = {},
        listen: () throws(TransportError) -> WebSocketServer
    ) throws(TransportError) -> SocketAddress {
        let listener = try listen()
        func reject(_ message: String) -> TransportError {
            Task {
                await listener.shutdown()
                await shutDown()
            }
            return TransportError(.addressInvalid, message)
        }
        // A host name may resolve to an address that is not loopback.
        guard isProtected || AdminRequestGuard.isLoopback(listener.address) else {
            throw reject("'\(host)' is reachable from other machines, as \(listener.address)")
        }
        let isFirst = endpoints.withLock { endpoints in
            guard endpoints[name] == nil, !isStopping else { return false }
            endpoints[name] = Endpoint(listener: listener, shutDown: shutDown)
            return true
        }
        guard isFirst else { throw reject("the server already has an \(name) or has shut down") }
        return listener.address
    }

    func closeEndpoints() async {
        let closed = endpoints.withLock { endpoints in
            defer { endpoints = [:] }
            return endpoints.values
        }
        for endpoint in closed {
            await endpoint.listener.stopAccepting()
            await endpoint.listener.refuseUpgrades()
            await endpoint.listener.endPages(within: .seconds(1))
        }
        for endpoint in closed { await endpoint.shutDown() }
    }
}

/// The admin endpoint: metrics and health, separate from the client address.
extension TrebuchetServer {
    /// Opens the admin endpoint until the server ends, and returns its address. May be called once, before or after `start`.
    ///
    /// - `/metrics`: the text of `prometheusMetrics`, for Prometheus
    /// - `/livez`: 200 while all reactors respond (`liveness`), else 503
    /// - `/readyz`: 200 while the server is ready for clients (`readiness`), else 503; with `?verbose` one line per check
    /// - `/healthz`: 200 while the server serves, else 503
    ///
    /// The endpoint rejects requests of web pages (with `Origin`). At a loopback address it also rejects host names that are not
    /// loopback. It accepts 512 connections at a time, which do not count as client connections.
    ///
    /// - Parameters:
    ///   - host: The address: loopback, unless `tls` and `token` are given.
    ///   - port: The port; 0 selects a free one.
    ///   - tls: The certificate for `https:`; nil for `http:`.
    ///   - token: The token for `/metrics` and `?verbose`, sent as `Authorization: Bearer …`: 16 bytes or more. With nil, the
    ///     default, all programs of this machine may read them.
    /// - Throws: `TransportError`: `addressInvalid` for an address that is not loopback without `tls` and `token`, for a token that
    ///   is too short, and for a second endpoint; else as `start`.
    @discardableResult
    public func openAdmin(
        host: String = "127.0.0.1", port: Int, tls: TLSServerSettings? = nil, token: String? = nil
    ) throws(TransportError) -> SocketAddress {
        try AdminRequestGuard.check("the admin endpoint", at: host, tls, token)
        let endpoint = AdminEndpoint(self, token: token)
        // Separate reactors, so that the endpoint responds even while those of the server are blocked; a test's reactors use
        // its clock.
        let reactors = owner == nil ? try ReactorGroup.clients() : ReactorGroup(shards.map(\.reactor))
        let address = try openEndpoint("admin endpoint", at: host, isProtected: tls != nil && token != nil) {
            () throws(TransportError) in
            try endpoint.listen(host: host, port: port, tls: tls, on: reactors)
        }
        if let tls { certificates.read(tls.certificateChainFile, of: "admin") }
        return address
    }
}

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
        list.now.time = Self.timeOfDay
        list.now.store = (context.probedStore.withLock { $0 } as? any SizedStore)?.fileUsage()
        list.now.certificates = certificates.all
        if let remaining = context.router?.certificateRemainingTime {
            list.now.certificates.append(("nodes", Int(list.now.time) + Int(remaining.components.seconds)))
        }
        return list
    }

    private static var timeOfDay: Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec / 1_000_000) / 1_000
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

/// Connections as operators see them.
extension TrebuchetServer {
    /// Closes a connection at an operator's request. Returns whether it existed.
    ///
    /// - Throws: `unavailable` if a reactor does not respond.
    package func closeConnection(_ number: UInt64) async throws(TrebuchetError) -> Bool {
        for shard in shards {
            let isClosed = await ServerView.query(shard.reactor) { () -> Bool in
                guard let connection = shard.connections[number] else { return false }
                connection.close(.policyViolation, reason: "closed by an operator")
                return true
            }
            guard let isClosed else {
                throw TrebuchetError(.unavailable, "\(shard.reactor.name) does not respond; it may be blocked")
            }
            if isClosed { return true }
        }
        return false
    }
}
