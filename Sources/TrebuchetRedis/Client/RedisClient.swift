package import Networking
internal import Platform
internal import Transports

/// Commands to one server, over one connection that is made again when it breaks.
///
/// Commands leave in the order in which they were given, many in flight, and their answers come in that order. Those given while
/// a connection is being made wait for it; they fail with `unavailable` when that attempt does, and so do all that come in the
/// pause behind it. What was in flight on a connection that broke fails with `unknownOutcome`; nothing is sent twice.
///
/// `@unchecked Sendable`: apart from `let`s its state is touched on its reactor alone.
package final class RedisClient: RedisConnectionOwner, @unchecked Sendable {
    enum State {
        case idle
        case connecting
        case greeting(RedisConnection)
        case open(RedisConnection)
        /// Until the next attempt; why the last one failed.
        case pausing(LoopTimer, reason: String)
        case closed
    }

    private struct Waiting {
        let command: RedisCommand
        let deadline: UInt64
        let done: RedisCompletion
    }

    /// A connection that did not live as long as this counts as an attempt that failed.
    private static let shortLife = Duration.seconds(1).nanoseconds

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
    private var greetingTimer: LoopTimer?
    private var sweepTimer: LoopTimer?
    private var sweepAt = UInt64.max
    /// Of `RedisClient+channels.swift`: channels, how many subscribers there have been, how many there are, and how many of these
    /// wait for the server to confirm it.
    var topics: [[UInt8]: RedisTopic] = [:]
    var subscribers = 0
    var subscriberCount = 0
    var joiningCount = 0
    /// Of `RedisConfirmation.swift`: who waits for the next WAIT, and whether one is under way.
    var unconfirmed: [Unconfirmed] = []
    var isConfirming = false

    /// - Parameters:
    ///   - scripts: those that each connection loads at its beginning.
    ///   - connections: counts the connections that are opened.
    package init(
        _ target: RedisTarget, settings: RedisSettings = RedisSettings(), scripts: [RedisScript] = [],
        counting connections: ConnectionCount = ConnectionCount(), on reactor: Reactor = ReactorGroup.client
    ) {
        self.connections = connections
        self.reactor = reactor
        self.target = target
        self.settings = settings
        self.scripts = scripts
        backoff = Backoff(first: settings.firstReconnectDelay, limit: settings.longestReconnectDelay)
    }

    deinit {
        switch state {
        case .greeting(let connection), .open(let connection): reactor.execute { connection.close() }
        default: break
        }
    }

    // MARK: Commands

    /// Gives the server's answer, or throws.
    ///
    /// - Parameter timeout: how long the answer may take; `RedisSettings.commandTimeout` unless given.
    package func send(_ command: RedisCommand, timeout: Duration? = nil) async throws(RedisError) -> RESPValue {
        let outcome = await withCheckedContinuation { continuation in
            reactor.run { self.send(command, timeout: timeout) { continuation.resume(returning: $0) } }
        }
        return try outcome.get()
    }

    /// Runs a script. One that the server has forgotten is loaded and run again.
    package func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument], timeout: Duration? = nil,
        confirmation: RedisConfirmation? = nil
    ) async throws(RedisError) -> RESPValue {
        let command = script.command(keys: keys, arguments)
        do {
            return try await send([command], timeout: timeout, confirmation: confirmation)
        } catch {
            guard case .reply(let reply) = error, reply.code == "NOSCRIPT" else { throw error }
            // One behind the other in one turn: nobody's FLUSH of this connection comes between.
            return try await send([script.load, command], timeout: timeout, confirmation: confirmation)
        }
    }

    /// Sends commands with nothing between them, and gives the answer to the last.
    package func send(
        _ commands: [RedisCommand], timeout: Duration? = nil, confirmation: RedisConfirmation? = nil
    ) async throws(RedisError) -> RESPValue {
        let outcome = await withCheckedContinuation { continuation in
            reactor.run {
                // The last fails, too, when one before it was not sent, and tells of it.
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

    /// On the reactor: the same without a task. `done` is called once, perhaps before this returns.
    package func send(_ command: RedisCommand, timeout: Duration? = nil, _ done: @escaping RedisCompletion) {
        let now = reactor.now
        let deadline = now &+ (timeout ?? settings.commandTimeout).nanoseconds
        switch state {
        case .open(let connection):
            if let excess = excess(command, connection.pendingCount, connection.pendingBytes) {
                return done(.failure(excess))
            }
            connection.send(command, now: now, deadline: deadline, done)
        case .idle, .connecting, .greeting:
            if let excess = excess(command, waiting.count, waitingBytes) { return done(.failure(excess)) }
            waiting.append(Waiting(command: command, deadline: deadline, done: done))
            waitingBytes += command.bytes.count
            if case .idle = state { connect() }
        case .pausing(_, let reason): return done(.failure(.unavailable(reason)))
        case .closed: return done(.failure(.closed))
        }
        sweep(at: deadline)
    }

    func excess(_ command: RedisCommand, _ count: Int, _ bytes: Int) -> RedisError? {
        if count >= settings.waitingCommands {
            return .overloaded("\(count) commands wait for Redis; the limit is RedisSettings.waitingCommands")
        }
        guard bytes + command.bytes.count > settings.waitingBytes else { return nil }
        return .overloaded(
            "\(bytes) bytes of commands wait for Redis, and \(command.bytes.count) more do not fit; the limit is \(settings.waitingBytes)"
                + " (RedisSettings.waitingBytes)")
    }

    /// Connects now rather than at the first command.
    package func start() {
        reactor.run { if case .idle = self.state { self.connect() } }
    }

    /// Ends the connection; all that waits fails.
    package func close() {
        reactor.run {
            let before = self.state
            self.state = .closed
            self.greetingTimer?.cancel()
            self.sweepTimer?.cancel()
            switch before {
            case .greeting(let connection), .open(let connection): connection.close()
            case .pausing(let timer, _): timer.cancel()
            case .idle, .connecting, .closed: break
            }
            self.failWaiting(.closed)
            self.endTopics(.closed)
        }
    }

    /// Gives the connection up, unless it leads there: the server turned out to be another one. The next is made soon.
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
                reactor.execute { [weak self] in self?.greet(channel, endpoint) }
            } catch {
                let reason = "\(error)"
                reactor.execute { [weak self] in self?.didFail(reason) }
            }
        }
    }

    private func greet(_ channel: ByteChannel, _ endpoint: RedisURL.Endpoint) {
        guard case .connecting = state else { return }
        let connection = RedisConnection(channel, to: endpoint, patience: settings.commandTimeout, owner: self)
        do {
            try connection.start()
        } catch {
            return didFail("\(error)")
        }
        state = .greeting(connection)
        greetingTimer = reactor.schedule(after: settings.connectTimeout, for: self) { client in
            client.refuse(connection, "\(endpoint) was connected to and does not answer")
        }
        let now = reactor.now
        let greeting = target.greeting(name: settings.clientName, scripts: scripts)
        for (index, command) in greeting.enumerated() {
            let isLast = index == greeting.count - 1
            connection.send(command, now: now, deadline: .max) { [weak self] outcome in
                self?.didGreet(connection, outcome, isLast: isLast)
            }
        }
    }

    private func didGreet(_ connection: RedisConnection, _ outcome: Result<RESPValue, RedisError>, isLast: Bool) {
        guard case .greeting(let current) = state, current === connection else { return }
        switch outcome {
        case .failure(.reply(let reply)): return refuse(connection, Self.explained(reply, connection.endpoint))
        case .failure: return
        case .success(.array(let role)) where target.isPrimaryNeeded && role.first?.isText("master") == false:
            return refuse(connection, "\(connection.endpoint) follows another server, and was said to be the primary")
        case .success: break
        }
        if isLast { open(connection) }
    }

    private static func explained(_ reply: RedisReply, _ endpoint: RedisURL.Endpoint) -> String {
        switch reply.code {
        case "NOAUTH": "\(endpoint) asks for a password: name one in the URL, redis://user:password@host (\(reply))"
        case "WRONGPASS": "\(endpoint) does not take the user and password of the URL (\(reply))"
        case "NOPERM": "the user of the URL may not do at \(endpoint) what is needed (\(reply))"
        default: "\(endpoint) answered the greeting with: \(reply)"
        }
    }

    /// Ends an attempt that had come as far as a connection.
    private func refuse(_ connection: RedisConnection, _ reason: String) {
        guard case .greeting(let current) = state, current === connection else { return }
        didFail(reason)
        connection.close()
    }

    private func open(_ connection: RedisConnection) {
        greetingTimer?.cancel()
        state = .open(connection)
        connections.add()
        openedAt = reactor.now
        for topic in topics.values { sendSubscribe(topic, over: connection) }
        let all = waiting
        waiting = []
        waitingBytes = 0
        for waiting in all {
            if waiting.deadline <= openedAt {
                waiting.done(.failure(.unavailable("\(connection.endpoint) was not connected to in time")))
            } else {
                connection.send(waiting.command, now: openedAt, deadline: waiting.deadline, waiting.done)
            }
        }
        sweep(at: openedAt &+ settings.commandTimeout.nanoseconds)
    }

    private func didFail(_ reason: String) {
        switch state {
        case .connecting, .greeting, .open: break
        case .idle, .pausing, .closed: return
        }
        greetingTimer?.cancel()
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
        case .greeting(let current) where current === connection: didFail(reason)
        case .open(let current) where current === connection:
            for topic in topics.values { topic.isConfirmed = false }
            guard reactor.now &- openedAt >= Self.shortLife else { return didFail(reason) }
            failures = 0
            connect()
        default: break
        }
    }

    // MARK: Deadlines

    /// Sees to it that deadlines are looked at then, or before.
    func sweep(at deadline: UInt64) {
        guard deadline < sweepAt else { return }
        sweepAt = deadline
        sweepTimer?.cancel()
        let now = reactor.now
        let delay = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
        sweepTimer = reactor.schedule(after: delay, for: self) { $0.sweep() }
    }

    private func sweep() {
        sweepAt = .max
        let now = reactor.now
        let late = waiting.filter { $0.deadline <= now }
        if !late.isEmpty {
            waiting.removeAll { $0.deadline <= now }
            waitingBytes -= late.reduce(0) { $0 + $1.command.bytes.count }
            for waiting in late { waiting.done(.failure(.unavailable("Redis was not connected to in time"))) }
        }
        if let next = waiting.map(\.deadline).min() { sweep(at: next) }
        guard case .open(let connection) = state else { return }
        if let next = connection.expire(now: now) { return sweep(at: next) }
        // Nothing is asked: whether the server is still there, which those who only listen would not notice.
        connection.send(RedisCommand("PING"), now: now, deadline: .max) { _ in }
        sweep(at: now &+ settings.commandTimeout.nanoseconds)
    }
}
