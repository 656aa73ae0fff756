internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster
internal import WebSockets

extension TrebuchetServer {
    /// Listens and serves until SIGTERM or SIGINT comes, its task is cancelled or `shutdown` is called, or an operator stops the node
    /// (`trebuchet cluster drain`); then it drains, for
    /// at most 10 seconds and those that `deactivate()` of its actors may take, and returns. A second signal meanwhile ends the
    /// process at once, with a line in the log and 128 and the signal's number: 130 at SIGINT, 143 at SIGTERM. SIGHUP reads the certificates
    /// again, and ends nothing. A server that was shut down before has nothing to run.
    ///
    /// - Throws: what `start` throws; at a node of a cluster `ClusterEngineError` of code `dataLoss`, after it has ended in order, when the
    ///   engine has lost what it kept (`ClusterMembership.afterDataLoss`).
    public func run() async throws { try await run(shutdownOn: [.terminate, .interrupt]) }

    /// The same with other signals, and another time to drain. None (`[]`) leaves all signals to the program, SIGHUP too.
    ///
    /// - Parameters:
    ///   - delay: as that of `shutdown`; none by default.
    ///   - drain: how long calls under way may take.
    public func run(
        shutdownOn signals: Set<ProcessSignal>, delay: Duration = .zero, drain: Duration = .seconds(10)
    ) async throws {
        // Before it listens: a signal that comes early ends it in order too.
        let isToHangUp = !signals.isEmpty && !signals.contains(.hangUp)
        let signals =
            signals.isEmpty ? nil : ShutdownSignals(signals, givingUp: Self.givenUpAtOnce, log: parts.log)
        defer { signals?.end() }
        if isToHangUp { signals?.onHangUp { [weak self] in self?.hangUp() } }
        if address == nil, !isStopping { parts.log("listening on \(try await start())") }
        signals?.onFirst { await self.shutdown(delay: delay, drain: drain) }
        let stop = Task {
            await stopRequested()
            guard !Task.isCancelled, parts.nodes != nil else { return }
            parts.log("shutting down, as an operator has asked")
            await shutdown(delay: delay, drain: drain)
        }
        let end = Task {
            guard await nodeFailed() != nil, !Task.isCancelled else { return }
            parts.logAt(.error, "shutting down, as the node owns nothing any more")
            // Calls that wait for an owner wait in vain.
            await shutdown(drain: min(drain, .seconds(1)))
        }
        defer {
            stop.cancel()
            end.cancel()
        }
        for await isStopped in stopped.stream where isStopped { break }
        if !stopped.currentValue { await shutdown(drain: drain) }
        if let failure = parts.nodes?.failure { throw failure }
    }

    private func hangUp() {
        guard hasTLS else { return parts.log("SIGHUP: there are no certificates to read again") }
        do throws(TransportError) {
            try reloadCertificates()
            parts.log("SIGHUP: certificates read again")
        } catch {
            parts.logAt(.error, "SIGHUP: goes on with the old certificates: \(error.message)")
        }
    }

    /// What a second signal costs, for the log.
    package static let givenUpAtOnce =
        "calls under way are not answered, deactivate() of actors is not waited for, and states that no caller was told of may not "
        + "be written"

    /// Stops: accepts no more connections, tells clients to go (`goAway`), lets calls and pages under way end, and closes the connections
    /// with 1001. All of that takes at most `drain`; of this a node of a cluster first has up to three quarters to give away what it
    /// owns. Calls that have not ended by then are answered with `unknownOutcome`, or with `unavailable` when they have not begun;
    /// those that their clients repeat (`@Idempotent`) get their answer there. Then `deactivate()` runs of all actors that were made on
    /// demand and have one, for at most 5 seconds, and states are written.
    ///
    /// - Parameters:
    ///   - delay: how long all goes on as before while `readiness` says that the server is to end: so that a load balancer has sent
    ///     new clients elsewhere before those that are here are sent away. None by default. A task that is cancelled does not wait.
    ///   - drain: how long calls under way may take.
    public func shutdown(delay: Duration = .zero, drain: Duration = .seconds(10)) async {
        if !isLeaving.exchange(true, ordering: .relaxed) { parts.events.tell(.draining) }
        if delay > .zero, status == .serving { try? await Task.sleep(for: delay) }
        let listener = stopListener()
        // Not cancelled with the task that asks for it: clients are to be told in any case.
        await Task {
            let began = MonotonicClock.now
            await listener?.stopAccepting()
            await listener?.refuseUpgrades()
            // Its clients go on meanwhile, at the next owners of what they use.
            await parts.nodes?.drain(within: drain * 3 / 4)
            let rest = max(.zero, drain - .nanoseconds(Int64(clamping: MonotonicClock.now - began)))
            await withTaskGroup(of: Void.self) { group in
                for shard in shards { group.addTask { await shard.drain(for: rest) } }
                group.addTask { await listener?.endPages(within: rest) }
            }
            await parts.nodes?.exchange.flush()
            await deactivateActors()
            for shard in shards {
                for writer in locals.writers(on: shard.states) {
                    await writer.flush()
                    // What is changed from now on was promised to nobody, and the store may be the next server's.
                    await shard.reactor.perform { writer.abandon() }
                }
            }
            await closeOperatorListeners()
            parts.events.tell(.ended)
            takeApart()
            stopped.update(true)
        }.value
    }

    /// Cuts all connections at once, as if the process had ended: no client is told, no call is waited for, nothing is written.
    package func cut() async {
        let listener = stopListener()
        // Before all else: other nodes hear nothing of what is taken apart here.
        parts.nodes?.mute()
        await Task {
            await listener?.stopAccepting()
            await listener?.endPages(within: .zero)
            for shard in shards { await shard.reactor.perform { shard.cut() } }
            // Sockets are closed when a turn ends.
            for shard in shards { await shard.reactor.perform {} }
            // Behind the connections: nobody hears from a dead node that it owns nothing any more.
            parts.nodes?.end()
            await closeOperatorListeners()
            takeApart()
            stopped.update(true)
        }.value
    }
}
