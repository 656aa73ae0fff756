internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetActors
internal import WebSockets

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
            alarms?.stop()
            let rest = max(.zero, drain - .nanoseconds(Int64(clamping: MonotonicClock.now - began)))
            await withTaskGroup(of: Void.self) { group in
                for shard in shards { group.addTask { await shard.drain(for: rest) } }
                // Calls over HTTP are answered when `drain` ends them.
                group.addTask { await listener?.endPages(within: rest > .zero ? rest + .seconds(1) : .zero) }
                group.addTask { [alarms] in await alarms?.stop(within: rest) }
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
        alarms?.stop()
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
