internal import Platform
package import Transports

/// The state machine of a client's connection. It maps inputs to effects and does no I/O; the time and a random number are passed
/// with each input.
///
/// Each attempt has a number, which its connection keeps. A late event of an abandoned attempt or a replaced connection is
/// therefore recognized and ignored.
///
/// There is at most one attempt, and at most one connection. Both exist together only while a server drains: its connection
/// continues until it ends or the attempt succeeds.
package struct ConnectionMachine: Sendable {
    /// An event.
    package enum Input: Equatable, Sendable {
        /// The user requests a connection.
        case connectRequested
        /// The attempt has succeeded.
        case connected(Int)
        case attemptFailed(Int, ConnectionFailure)
        case connectionLost(Int, TransportError)
        /// The server of this connection drains, and states when it accepts connections again.
        case goAway(Int, reconnectAfter: Duration)
        /// The timer of `scheduleRetry` has fired.
        case retryTimerFired(Int)
        /// The user disconnects until the next request.
        case disconnectRequested
        /// The user closes the client.
        case closeRequested
    }

    /// An action; actions are performed in order.
    package enum Effect: Equatable, Sendable {
        /// Get a token and connect; report `connected` or `attemptFailed`.
        case startConnecting(Int)
        /// Cancel the attempt; its outcome need not be reported.
        case abandon(Int)
        /// Report `retryTimerFired` after a delay.
        case scheduleRetry(Int, after: Duration)
        /// Cancel the last scheduled timer.
        case cancelRetry
        /// Use this connection for calls and streams from now on.
        case activateLink(Int)
        /// Close the connection, possibly after the responses of its calls. Its loss need not be reported.
        case drop(Int)
        /// Publish the new state.
        case notify(TrebuchetClient.ConnectionState)
        /// Resume the callers that wait for a connection.
        case releaseWaiting
        /// Fail the callers that wait: there will be no connection until the user requests one again.
        case failWaiting(TransportError)
    }

    /// The current connection.
    private struct Connection {
        let number: Int
        /// Nanoseconds of the monotonic clock.
        let since: UInt64
        var isDraining = false
    }

    /// The current attempt.
    private enum Attempt {
        case none
        /// A timer runs until the attempt may start. The user may skip the delay unless the server requested it.
        case waiting(Int, forServer: Bool)
        case underWay(Int)
    }

    /// The maximum delay that a server can request in `goAway`.
    private static let maximumAbsence = Duration.seconds(60)

    package let policy: ReconnectPolicy
    /// The number of addresses. Attempts use them in turn; a failure of all of them counts as one failure.
    private let addresses: Int
    private var connection: Connection?
    private var attempt = Attempt.none
    private var lastNumber = 0
    private var isClosed = false
    /// The attempts since the user's request, or since the last connection that lasted.
    private var attempts = 0
    private var failures = 0
    /// The number of consecutive attempts with a final failure.
    private var refusals = 0
    /// True after the first connection since the user's request.
    private var hasBeenConnected = false
    /// The last error since there was a connection.
    private var lastError: TransportError?

    /// True if the connection is being replaced; then work that can wait should wait.
    package var isBeingReplaced: Bool {
        guard connection?.isDraining == true else { return false }
        if case .none = attempt { return false }
        return true
    }

    package init(policy: ReconnectPolicy = ReconnectPolicy(), addresses: Int = 1) {
        self.policy = policy
        self.addresses = max(1, addresses)
    }

    package var state: TrebuchetClient.ConnectionState {
        if isClosed { return .closed }
        if let connection { return connection.isDraining ? .draining : .connected }
        if case .none = attempt { return .disconnected(lastError) }
        return .connecting(attempt: attempts, after: lastError)
    }

    /// Handles an input.
    ///
    /// - Parameters:
    ///   - now: nanoseconds of the monotonic clock.
    ///   - random: uniformly distributed in `0..<1`.
    package mutating func handle(_ input: Input, at now: UInt64, random: Double) -> [Effect] {
        let before = state
        var effects =
            switch input {
            case .connectRequested: connectRequested()
            case .connected(let number): connected(number, now)
            case .attemptFailed(let number, let failure): attemptFailed(number, failure, random)
            case .connectionLost(let number, let error): connectionLost(number, error, now, random)
            case .goAway(let number, let delay): goAway(number, delay, now, random)
            case .retryTimerFired(let number): retryTimerFired(number)
            case .disconnectRequested: disconnectRequested()
            case .closeRequested: closeRequested()
            }
        let state = state
        let isNew = state != before
        if isNew { effects.append(.notify(state)) }
        // A request of the user gets a response even without a state change.
        guard isNew || input == .connectRequested else { return effects }
        switch state {
        case .connected: effects.append(.releaseWaiting)
        case .draining: if !isNew { effects.append(.releaseWaiting) }
        case .connecting: break
        case .disconnected(let error):
            effects.append(.failWaiting(error ?? TransportError(.closed, "there is no connection")))
        case .closed: effects.append(.failWaiting(TransportError(.closed, "the client was closed")))
        }
        return effects
    }

    private mutating func connectRequested() -> [Effect] {
        guard !isClosed, connection == nil else { return [] }
        switch attempt {
        case .none:
            attempts = 1
            failures = 0
            refusals = 0
            hasBeenConnected = false
            lastError = nil
            lastNumber += 1
            return start(lastNumber)
        case .waiting(let number, forServer: false): return [.cancelRetry] + start(number)
        case .waiting, .underWay: return []
        }
    }

    private mutating func connected(_ number: Int, _ now: UInt64) -> [Effect] {
        guard case .underWay(number) = attempt else { return connection?.number == number ? [] : [.drop(number)] }
        let replaced = connection
        attempt = .none
        connection = Connection(number: number, since: now)
        hasBeenConnected = true
        refusals = 0
        lastError = nil
        return [.activateLink(number)] + (replaced.map { [.drop($0.number)] } ?? [])
    }

    private mutating func attemptFailed(_ number: Int, _ failure: ConnectionFailure, _ random: Double) -> [Effect] {
        guard case .underWay(number) = attempt else { return [] }
        attempt = .none
        failures += 1
        lastError = failure.error
        let isRefused =
            switch failure.retryPolicy {
            case .never: false
            case .atFirst: !hasBeenConnected
            case .always: true
            }
        refusals = isRefused ? refusals + 1 : 0
        // Another address may accept this client.
        return isRefused && refusals >= addresses ? [] : retry(random)
    }

    private mutating func connectionLost(
        _ number: Int, _ error: TransportError, _ now: UInt64, _ random: Double
    ) -> [Effect] {
        guard let lost = connection, lost.number == number else {
            // A connection may break before `connected` is reported.
            return attemptFailed(number, ConnectionFailure(error), random)
        }
        connection = nil
        // The error of a new attempt is more informative than the expected end of a draining connection.
        lastError = lastError ?? error
        // The next step was decided at `goAway`.
        if lost.isDraining { return [] }
        resetAttempts(ifStable: lost, now)
        failures += 1
        return retry(random)
    }

    private mutating func goAway(
        _ number: Int, _ delay: Duration, _ now: UInt64, _ random: Double
    ) -> [Effect] {
        guard let connection, connection.number == number, !connection.isDraining else { return [] }
        self.connection?.isDraining = true
        // A server that drains every connection immediately counts as a failing one.
        if !resetAttempts(ifStable: connection, now) { failures += 1 }
        // The delay refers to that server; other addresses are available now.
        guard addresses == 1 else { return retry(random) }
        return retry(random, notBefore: min(delay, Self.maximumAbsence), forServer: true)
    }

    private mutating func retryTimerFired(_ number: Int) -> [Effect] {
        guard case .waiting(number, _) = attempt else { return [] }
        return start(number)
    }

    private mutating func closeRequested() -> [Effect] {
        guard !isClosed else { return [] }
        isClosed = true
        return dropConnection()
    }

    private mutating func disconnectRequested() -> [Effect] {
        let effects = dropConnection()
        // Without a connection or an attempt there is no state change to report.
        if !effects.isEmpty { lastError = nil }
        return effects
    }

    /// Ends the connection and the attempt, if there are any.
    private mutating func dropConnection() -> [Effect] {
        var effects: [Effect] = []
        switch attempt {
        case .none: break
        case .waiting: effects.append(.cancelRetry)
        case .underWay(let number): effects.append(.abandon(number))
        }
        if let connection { effects.append(.drop(connection.number)) }
        attempt = .none
        connection = nil
        return effects
    }

    private mutating func start(_ number: Int) -> [Effect] {
        attempt = .underWay(number)
        return [.startConnecting(number)]
    }

    /// Schedules another attempt, if the policy allows one.
    private mutating func retry(
        _ random: Double, notBefore floor: Duration = .zero, forServer: Bool = false
    ) -> [Effect] {
        let mayRetry = hasBeenConnected || policy.retriesFirstConnection || attempts < addresses
        guard mayRetry, attempts < policy.maximumAttempts ?? .max else { return [] }
        attempts += 1
        lastNumber += 1
        attempt = .waiting(lastNumber, forServer: forServer)
        let rounds = (failures + addresses - 1) / addresses
        return [.scheduleRetry(lastNumber, after: max(policy.delay(afterFailures: rounds, random: random), floor))]
    }

    @discardableResult
    private mutating func resetAttempts(ifStable connection: Connection, _ now: UInt64) -> Bool {
        guard now >= connection.since &+ policy.resetAfter.nanoseconds else { return false }
        attempts = 0
        failures = 0
        return true
    }
}
