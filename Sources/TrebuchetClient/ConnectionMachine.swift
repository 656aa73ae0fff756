internal import Platform
package import Transports

/// The life of a client's connection: what happens goes in, what to do comes out. Pure: it has no clock, and the time and
/// a random number come with each input.
///
/// Each attempt has a number, and the connection that comes of it keeps it. So what is told late, of an attempt that was
/// abandoned or of a connection that has been replaced, is known as such and does no harm.
///
/// There is at most one attempt, and at most one connection. Both at once there are only while a server drains: its
/// connection goes on until it ends by itself or the attempt has led to another one.
package struct ConnectionMachine: Sendable {
    package enum Input: Equatable, Sendable {
        /// The user wants a connection.
        case connectAsked
        /// The attempt has led to a connection.
        case connected(Int)
        case attemptFailed(Int, ConnectionFailure)
        case connectionLost(Int, TransportError)
        /// The server sends the client of this connection away, and says when to come back.
        case goAway(Int, reconnectAfter: Duration)
        /// The time of `scheduleRetry` is over.
        case retryTimerFired(Int)
        /// The user wants no connection until they ask for one again.
        case disconnectAsked
        /// The user wants no connection any more.
        case closeAsked
    }

    /// What to do, in this order.
    package enum Effect: Equatable, Sendable {
        /// Ask the token provider and connect; tell `connected` or `attemptFailed`.
        case startConnecting(Int)
        /// Stop the attempt; whatever it comes to need not be told.
        case abandon(Int)
        /// Tell `retryTimerFired` after a delay.
        case scheduleRetry(Int, after: Duration)
        /// Stop the timer that was scheduled last.
        case cancelRetry
        /// Calls and streams go over this connection from now on.
        case use(Int)
        /// Close the connection; calls that wait for their answers over it may have them first. Its loss need not be told.
        case drop(Int)
        /// The state has changed.
        case tell(TrebuchetClient.ConnectionState)
        /// There is a connection for those that wait for one.
        case releaseWaiting
        /// There will be none, unless the user asks again.
        case failWaiting(TransportError)
    }

    private struct Connection {
        let number: Int
        /// Nanoseconds of the monotonic clock.
        let since: UInt64
        var isDraining = false
    }

    private enum Attempt {
        case none
        /// A timer runs until it may begin; whose wish that is makes the difference whether the user may cut it short.
        case waiting(Int, forServer: Bool)
        case underWay(Int)
    }

    /// The longest time for which a server can keep its clients away.
    private static let longestAbsence = Duration.seconds(60)

    package let policy: ReconnectPolicy
    /// Each attempt goes to the next one; when all have failed that counts as one failure.
    private let addresses: Int
    private var connection: Connection?
    private var attempt = Attempt.none
    private var lastNumber = 0
    private var isClosed = false
    /// Since the user asked, or since the last connection that lasted.
    private var attempts = 0
    private var failures = 0
    /// Attempts in a row that would not go better another time.
    private var refusals = 0
    /// Since the user asked.
    private var hasBeenConnected = false
    /// What went wrong since there was a connection.
    private var lastError: TransportError?

    /// Whether the connection is to be replaced, and what can wait had better.
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

    /// - Parameters:
    ///   - now: nanoseconds of the monotonic clock.
    ///   - random: evenly distributed in `0..<1`.
    package mutating func handle(_ input: Input, at now: UInt64, random: Double) -> [Effect] {
        let before = state
        var effects =
            switch input {
            case .connectAsked: connectAsked()
            case .connected(let number): connected(number, now)
            case .attemptFailed(let number, let failure): attemptFailed(number, failure, random)
            case .connectionLost(let number, let error): connectionLost(number, error, now, random)
            case .goAway(let number, let delay): goAway(number, delay, now, random)
            case .retryTimerFired(let number): retryTimerFired(number)
            case .disconnectAsked: disconnectAsked()
            case .closeAsked: closeAsked()
            }
        let state = state
        let isNew = state != before
        if isNew { effects.append(.tell(state)) }
        // Who asks is answered even when nothing changes.
        guard isNew || input == .connectAsked else { return effects }
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

    private mutating func connectAsked() -> [Effect] {
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
        return [.use(number)] + (replaced.map { [.drop($0.number)] } ?? [])
    }

    private mutating func attemptFailed(_ number: Int, _ failure: ConnectionFailure, _ random: Double) -> [Effect] {
        guard case .underWay(number) = attempt else { return [] }
        attempt = .none
        failures += 1
        lastError = failure.error
        let isRefused =
            switch failure.finality {
            case .never: false
            case .atFirst: !hasBeenConnected
            case .always: true
            }
        refusals = isRefused ? refusals + 1 : 0
        // Another address may let this client in.
        return isRefused && refusals >= addresses ? [] : retry(random)
    }

    private mutating func connectionLost(
        _ number: Int, _ error: TransportError, _ now: UInt64, _ random: Double
    ) -> [Effect] {
        guard let lost = connection, lost.number == number else {
            // It may break before it was told that it is there.
            return attemptFailed(number, ConnectionFailure(error), random)
        }
        connection = nil
        // What a new attempt has met with says more than the end of a connection that was to end.
        lastError = lastError ?? error
        // What follows was decided when the server said that it would end.
        if lost.isDraining { return [] }
        countAnew(ifLasted: lost, now)
        failures += 1
        return retry(random)
    }

    private mutating func goAway(
        _ number: Int, _ delay: Duration, _ now: UInt64, _ random: Double
    ) -> [Effect] {
        guard let connection, connection.number == number, !connection.isDraining else { return [] }
        self.connection?.isDraining = true
        // A server that sends every client away at once is no better than one that fails.
        if !countAnew(ifLasted: connection, now) { failures += 1 }
        // That is when it is back itself; others are there.
        guard addresses == 1 else { return retry(random) }
        return retry(random, notBefore: min(delay, Self.longestAbsence), forServer: true)
    }

    private mutating func retryTimerFired(_ number: Int) -> [Effect] {
        guard case .waiting(number, _) = attempt else { return [] }
        return start(number)
    }

    private mutating func closeAsked() -> [Effect] {
        guard !isClosed else { return [] }
        isClosed = true
        return letGo()
    }

    private mutating func disconnectAsked() -> [Effect] {
        let effects = letGo()
        // Without a connection or an attempt there is nothing new to be told.
        if !effects.isEmpty { lastError = nil }
        return effects
    }

    /// Ends what there is: the connection, the attempt, both or none.
    private mutating func letGo() -> [Effect] {
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

    /// Waits for another attempt, if there is to be one.
    private mutating func retry(
        _ random: Double, notBefore floor: Duration = .zero, forServer: Bool = false
    ) -> [Effect] {
        let mayGoOn = hasBeenConnected || policy.retriesFirstConnection || attempts < addresses
        guard mayGoOn, attempts < policy.maximumAttempts ?? .max else { return [] }
        attempts += 1
        lastNumber += 1
        attempt = .waiting(lastNumber, forServer: forServer)
        let rounds = (failures + addresses - 1) / addresses
        return [.scheduleRetry(lastNumber, after: max(policy.delay(afterFailures: rounds, random: random), floor))]
    }

    @discardableResult
    private mutating func countAnew(ifLasted connection: Connection, _ now: UInt64) -> Bool {
        guard now >= connection.since &+ policy.resetAfter.nanoseconds else { return false }
        attempts = 0
        failures = 0
        return true
    }
}
