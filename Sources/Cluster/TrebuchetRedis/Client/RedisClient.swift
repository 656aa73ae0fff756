package import Networking
internal import Platform
internal import Synchronization
internal import Transports

/// Sends commands to one server, over one connection that is reestablished after a failure.
///
/// Commands are sent in the order of the calls, pipelined, and their replies arrive in that order. Commands sent
/// during a connection attempt wait for it. If the attempt fails, they fail with `unavailable`, and so do all commands
/// in the pause after it. Commands in flight on a broken connection fail with `unknownOutcome`; no command is sent
/// twice.
///
/// `@unchecked Sendable`: apart from `let`s its state is accessed only on its reactor.
package final class RedisClient: RedisConnectionOwner, @unchecked Sendable {
    /// The state of the connection.
    enum State {
        case idle
        case connecting
        case handshake(RedisConnection)
        case open(RedisConnection)
        /// A pause before the next attempt, with the reason of the last failure.
        case pausing(LoopTimer, reason: String)
        case closed
    }

    /// A command that waits for the connection.
    private struct Waiting {
        let command: RedisCommand
        let deadline: UInt64
        let done: RedisCompletion
    }

    /// The lifetime below which a connection counts as a failed attempt.
    private static let shortLifetime = Duration.seconds(1).nanoseconds

    package let reactor: Reactor
    private let target: RedisTarget
    let settings: RedisSettings
    private let scripts: [RedisScript]
    private let backoff: Backoff
    private let connections: ConnectionCount
    private(set) var state = State.idle
    private var waiting: [Waiting] = []
    private var waitingBytes = 0
    private var failures = 0
    private var openedAt: UInt64 = 0
    private var handshakeTimer: LoopTimer?
    private var deadlineTimer: LoopTimer?
    private var deadlineTimerTime = UInt64.max
    /// State of `RedisClient+channels.swift`: the channels, the number of subscribers so far, the current number, and
    /// the number of unconfirmed ones.
    var topics: [[UInt8]: RedisChannelSubscribers] = [:]
    var subscribers = 0
    var subscriberCount = 0
    var joiningCount = 0
    /// State of `RedisConfirmation.swift`: the writes that wait for the next WAIT, and whether one is in progress.
    var unconfirmed: [Unconfirmed] = []
    var isConfirming = false

    /// - Parameters:
    ///   - scripts: The scripts that each connection loads first.
    ///   - connections: Counts opened connections.
    package init(
        _ target: RedisTarget, settings: RedisSettings = RedisSettings(), scripts: [RedisScript] = [],
        counting connections: ConnectionCount = ConnectionCount(), on reactor: Reactor = ReactorGroup.client
    ) {
        self.connections = connections
        self.reactor = reactor
        self.target = target
        self.settings = settings
        self.scripts = scripts
        backoff = Backoff(first: settings.firstReconnectDelay, limit: settings.maximumReconnectDelay)
    }

    deinit {
        switch state {
        case .handshake(let connection), .open(let connection):
            let channel = connection.channel
            reactor.execute { channel.close() }
        default: break
        }
    }

    // MARK: Commands

    /// Sends a command and returns the server's reply.
    ///
    /// - Parameter timeout: The maximum time until the reply; `RedisSettings.commandTimeout` by default.
    package func send(_ command: RedisCommand, timeout: Duration? = nil) async throws(RedisError) -> RESPValue {
        let outcome = await withCheckedContinuation { continuation in
            reactor.run { self.send(command, timeout: timeout) { continuation.resume(returning: $0) } }
        }
        return try outcome.get()
    }

    /// Runs a script. If the server does not know it, it is loaded and run again.
    package func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument], timeout: Duration? = nil,
        confirmation: RedisConfirmation? = nil
    ) async throws(RedisError) -> RESPValue {
        let command = script.command(keys: keys, arguments)
        do {
            return try await send([command], timeout: timeout, confirmation: confirmation)
        } catch {
            guard case .reply(let reply) = error, reply.code == "NOSCRIPT" else { throw error }
            // In one turn without gap: no FLUSH over this connection comes in between.
            return try await send([script.load, command], timeout: timeout, confirmation: confirmation)
        }
    }

    /// Sends commands without others in between, and returns the reply to the last.
    package func send(
        _ commands: [RedisCommand], timeout: Duration? = nil, confirmation: RedisConfirmation? = nil
    ) async throws(RedisError) -> RESPValue {
        let outcome = await withCheckedContinuation { continuation in
            reactor.run {
                // If an earlier one was not sent, the last fails, too, and reports it.
                for command in commands.dropLast() { self.send(command, timeout: timeout) { _ in } }
                self.send(commands.last!, timeout: timeout) { outcome in
                    guard let confirmation, case .success(let answer) = outcome, confirmation.isNeeded(answer) else {
                        return continuation.resume(returning: outcome)
                    }
                    self.confirm(confirmation) { continuation.resume(returning: $0.map { answer }) }
                }
            }
        }
        return try outcome.get()
    }

    /// Sends a command without a task, on the reactor. `done` is called once, possibly before this returns.
    package func send(_ command: RedisCommand, timeout: Duration? = nil, _ done: @escaping RedisCompletion) {
        let now = reactor.now
        let deadline = now &+ (timeout ?? settings.commandTimeout).nanoseconds
        switch state {
        case .open(let connection):
            if let excess = excess(command, connection.pendingCount, connection.pendingBytes) {
                return done(.failure(excess))
            }
            connection.send(command, now: now, deadline: deadline, done)
        case .idle, .connecting, .handshake:
            if let excess = excess(command, waiting.count, waitingBytes) { return done(.failure(excess)) }
            waiting.append(Waiting(command: command, deadline: deadline, done: done))
            waitingBytes += command.bytes.count
            if case .idle = state { connect() }
        case .pausing(_, let reason): return done(.failure(.unavailable(reason)))
        case .closed: return done(.failure(.closed))
        }
        scheduleDeadlineCheck(at: deadline)
    }

    func excess(_ command: RedisCommand, _ count: Int, _ bytes: Int) -> RedisError? {
        if count >= settings.waitingCommands {
            return .overloaded("\(count) queued commands for Redis reach the limit RedisSettings.waitingCommands")
        }
        guard bytes + command.bytes.count > settings.waitingBytes else { return nil }
        return .overloaded(
            "\(bytes) bytes of commands are queued for Redis; \(command.bytes.count) more exceed the limit of \(settings.waitingBytes)"
                + " (RedisSettings.waitingBytes)")
    }

    /// Connects now instead of at the first command.
    package func start() {
        reactor.run { if case .idle = self.state { self.connect() } }
    }

    /// Closes the connection. All waiting commands fail.
    package func close() {
        reactor.run {
            let before = self.state
            self.state = .closed
            self.handshakeTimer?.cancel()
            self.deadlineTimer?.cancel()
            switch before {
            case .handshake(let connection), .open(let connection): connection.close()
            case .pausing(let timer, _): timer.cancel()
            case .idle, .connecting, .closed: break
            }
            self.failWaiting(.closed)
            self.endTopics(.closed)
        }
    }

    /// Closes the connection, unless it leads to that endpoint, because the server has changed. The next connection attempt follows
    /// soon.
    func reconnect(unlessTo endpoint: RedisURL.Endpoint?) {
        reactor.run {
            if case .open(let connection) = self.state, connection.endpoint != endpoint { connection.close() }
        }
    }

    // MARK: Connecting

    private func connect() {
        state = .connecting
        let (target, settings, reactor) = (target, settings, reactor)
        Task(executorPreference: reactor.taskExecutor) { [weak self] in
            do {
                let endpoint = try await target.resolve()
                let channel = try await Connector.connect(
                    host: endpoint.host, port: endpoint.port, on: reactor, timeout: settings.connectTimeout)
                if target.isSecure { try channel.secure(with: TLSContext.client(settings.tls), host: endpoint.host) }
                reactor.execute { [weak self] in self?.beginHandshake(channel, endpoint) }
            } catch {
                let reason = "\(error)"
                reactor.execute { [weak self] in self?.didFail(reason) }
            }
        }
    }

    private func beginHandshake(_ channel: ByteChannel, _ endpoint: RedisURL.Endpoint) {
        guard case .connecting = state else { return }
        let connection = RedisConnection(channel, to: endpoint, patience: settings.commandTimeout, owner: self)
        do {
            try connection.start()
        } catch {
            return didFail("\(error)")
        }
        state = .handshake(connection)
        handshakeTimer = reactor.schedule(after: settings.connectTimeout, for: self) { client in
            client.refuse(connection, "\(endpoint) accepted the connection and does not respond")
        }
        let (now, bound) = (reactor.now, LoopBound(connection, on: reactor))
        let handshake = target.handshake(name: settings.clientName, scripts: scripts)
        for (index, command) in handshake.enumerated() {
            let isLast = index == handshake.count - 1
            connection.send(command, now: now, deadline: .max) { [weak self] outcome in
                self?.didReceiveHandshakeReply(bound.value, outcome, isLast: isLast)
            }
        }
    }

    private func didReceiveHandshakeReply(
        _ connection: RedisConnection, _ outcome: Result<RESPValue, RedisError>, isLast: Bool
    ) {
        guard case .handshake(let current) = state, current === connection else { return }
        switch outcome {
        case .failure(.reply(let reply)): return refuse(connection, Self.explained(reply, connection.endpoint))
        case .failure: return
        case .success(.array(let role)) where target.isPrimaryNeeded && role.first?.isText("master") == false:
            return refuse(connection, "\(connection.endpoint) is a replica, but was reported as the primary")
        case .success: break
        }
        if isLast { open(connection) }
    }

    private static func explained(_ reply: RedisErrorReply, _ endpoint: RedisURL.Endpoint) -> String {
        switch reply.code {
        case "NOAUTH": "\(endpoint) requires a password; add it to the URL, redis://user:password@host (\(reply))"
        case "WRONGPASS": "\(endpoint) rejected the user or password of the URL (\(reply))"
        case "NOPERM": "the user of the URL lacks required permissions at \(endpoint) (\(reply))"
        default: "\(endpoint) replied to the handshake with: \(reply)"
        }
    }

    /// Fails an attempt that had established a connection.
    private func refuse(_ connection: RedisConnection, _ reason: String) {
        guard case .handshake(let current) = state, current === connection else { return }
        didFail(reason)
        connection.close()
    }

    private func open(_ connection: RedisConnection) {
        handshakeTimer?.cancel()
        state = .open(connection)
        connections.increment()
        openedAt = reactor.now
        for topic in topics.values { sendSubscribe(topic, over: connection) }
        let all = waiting
        waiting = []
        waitingBytes = 0
        for waiting in all {
            if waiting.deadline <= openedAt {
                waiting.done(.failure(.unavailable("connecting to \(connection.endpoint) timed out")))
            } else {
                connection.send(waiting.command, now: openedAt, deadline: waiting.deadline, waiting.done)
            }
        }
        scheduleDeadlineCheck(at: openedAt &+ settings.commandTimeout.nanoseconds)
    }

    private func didFail(_ reason: String) {
        switch state {
        case .connecting, .handshake, .open: break
        case .idle, .pausing, .closed: return
        }
        handshakeTimer?.cancel()
        failures += 1
        let timer = reactor.schedule(after: backoff.delay(afterFailures: failures), for: self) { $0.connect() }
        state = .pausing(timer, reason: reason)
        failWaiting(.unavailable(reason))
        failTopics(.unavailable(reason))
    }

    private func failWaiting(_ error: RedisError) {
        let all = waiting
        waiting = []
        waitingBytes = 0
        for waiting in all { waiting.done(.failure(error)) }
    }

    func connection(_ connection: RedisConnection, didPush elements: [RESPValue]) { didPush(elements) }

    func connectionDidClose(_ connection: RedisConnection, reason: String) {
        switch state {
        case .handshake(let current) where current === connection: didFail(reason)
        case .open(let current) where current === connection:
            for topic in topics.values { topic.isConfirmed = false }
            guard reactor.now &- openedAt >= Self.shortLifetime else { return didFail(reason) }
            failures = 0
            connect()
        default: break
        }
    }

    // MARK: Deadlines

    /// Schedules a check of deadlines at this time or earlier.
    func scheduleDeadlineCheck(at deadline: UInt64) {
        guard deadline < deadlineTimerTime else { return }
        deadlineTimerTime = deadline
        deadlineTimer?.cancel()
        let now = reactor.now
        let delay = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
        deadlineTimer = reactor.schedule(after: delay, for: self) { $0.checkDeadlines() }
    }

    private func checkDeadlines() {
        deadlineTimerTime = .max
        let now = reactor.now
        let late = waiting.filter { $0.deadline <= now }
        if !late.isEmpty {
            waiting.removeAll { $0.deadline <= now }
            waitingBytes -= late.reduce(0) { $0 + $1.command.bytes.count }
            for waiting in late { waiting.done(.failure(.unavailable("connecting to Redis timed out"))) }
        }
        if let next = waiting.map(\.deadline).min() { scheduleDeadlineCheck(at: next) }
        guard case .open(let connection) = state else { return }
        if let next = connection.expire(now: now) { return scheduleDeadlineCheck(at: next) }
        // No command is waiting: checks whether the server still responds, which subscribers alone would not notice.
        connection.send(RedisCommand("PING"), now: now, deadline: .max) { _ in }
        scheduleDeadlineCheck(at: now &+ settings.commandTimeout.nanoseconds)
    }
}

/// How many connections the clients of a route have opened so far.
package final class ConnectionCount: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var value: Int { count.load(ordering: .acquiring) }

    func increment() { count.add(1, ordering: .releasing) }
}
