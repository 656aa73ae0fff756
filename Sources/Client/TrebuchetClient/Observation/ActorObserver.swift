public import Distributed
public import Observation
internal import Relays
internal import Synchronization

/// An observed actor with the state of its observation: `$state` of an ``ObservedActor``.
///
/// All properties can be read from any thread and are tracked by Observation. Network events change them on the main actor.
/// Observers are notified after a change, so that they read the new value.
public final class ActorObserver<A: DistributedActor, Value: Codable & Sendable>: Observable, Sendable
where A.ActorSystem == TrebuchetActorSystem {
    /// The origin of the client to use; a later case has precedence.
    enum ClientOrigin: Int {
        case none, processDefault, environment, user
    }

    /// The phase of the observation.
    private enum Phase: Equatable {
        case idle
        case following
        case ended(StreamOutcome)
    }

    /// The state of an observer.
    private struct Contents: Sendable {
        var source: ObservationTarget<A>?
        var origin = ClientOrigin.none
        var value: Value?
        /// The current stream, and the number of its displayed value.
        var stream: StateStream<Value>?
        var shown: UInt64 = 0
        var phase = Phase.idle
        /// The error of the newest version if it does not decode.
        var undecodable: TrebuchetError?
        var connectionState = TrebuchetClient.ConnectionState.disconnected(nil)
        /// A counter of observations, by which late events of an earlier one are ignored.
        var run: UInt64 = 0
        var tasks: [Task<Void, Never>] = []

        init(_ source: ObservationTarget<A>? = nil, _ origin: ClientOrigin = .none) {
            self.source = source
            self.origin = origin
            if let source { connectionState = source.connectionStates.currentValue }
        }

        var isConnected: Bool { connectionState == .connected || connectionState == .draining }
    }

    private let name: String
    private let path: any KeyPath<A, StateObservation<A, Value>> & Sendable
    /// The actor system of the client or actor in the initializer.
    private let givenSystem: ObjectIdentifier?
    private let contents: Mutex<Contents>
    private let registrar = ObservationRegistrar()

    init(
        _ name: String, _ path: any KeyPath<A, StateObservation<A, Value>> & Sendable, client: TrebuchetClient?
    ) {
        self.name = name
        self.path = path
        givenSystem = client.map { ObjectIdentifier($0.actorSystem) }
        contents = Mutex(client.map { Contents(ObservationTarget(name, at: $0), .user) } ?? Contents())
    }

    init(_ actor: A, _ path: any KeyPath<A, StateObservation<A, Value>> & Sendable) {
        name = actor.id.id
        self.path = path
        givenSystem = ObjectIdentifier(actor.actorSystem)
        contents = Mutex(Contents(ObservationTarget(actor), .user))
    }

    deinit {
        for task in contents.withLock({ $0.tasks }) { task.cancel() }
    }

    /// Returns whether both observe the same actor and state.
    func observesTheSame(as other: ActorObserver) -> Bool {
        name == other.name && path as AnyKeyPath == other.path as AnyKeyPath && givenSystem == other.givenSystem
    }

    // MARK: Reading

    /// The newest value; nil until the first one arrives. It stays when the connection breaks or the stream fails.
    ///
    /// After the first value, a value of a server's actor is never older than the effects of completed calls of this client.
    /// Code that changes the state by a call then reads the change here.
    public var value: Value? {
        isStarted().registrar.access(ObserverRegistrar(), keyPath: \.value)
        let (stream, shown) = contents.withLock { ($0.stream, $0.shown) }
        // A newer value may be pending, because it is delivered on the main actor, possibly this thread. The first value also
        // changes other properties.
        guard let stream, shown > 0, let newest = stream.newest(after: shown) else {
            return contents.withLock { $0.value }
        }
        // The old value is released outside the lock, as below.
        let (value, _) = contents.withLock { contents -> (Value?, old: Value?) in
            guard contents.stream?.isSame(as: stream) == true, newest.count > contents.shown else {
                return (contents.value, nil)
            }
            let old = contents.value
            (contents.value, contents.shown) = (newest.value, newest.count)
            return (newest.value, old)
        }
        return value
    }

    /// The actor, for calls; nil without a client.
    public var actor: A? { read { try? $0.source?.actor.get() } }

    /// Whether a value is expected: the first one, or the next one after a broken connection.
    ///
    /// False when the observation has failed; then there is an `error`.
    public var isConnecting: Bool {
        read { $0.phase == .following && ($0.value == nil && $0.undecodable == nil || !$0.isConnected) }
    }

    /// The reason that there are no newer values; nil while they are expected, and after an orderly end of the stream.
    ///
    /// `actorNotFound`, for example, remains until ``retry()``. `unavailable` means that there is no client, or that the client
    /// has given up, because the server is absent or rejects it (`connectionState` has the details). It disappears when there is
    /// a client, or when the client connects again. After an error with a `retryAfter`, `unavailable` or `rateLimited`, the
    /// observation restarts one to two times that delay later. A version that does not decode leaves the previous value in place,
    /// and its error remains until a version decodes.
    public var error: TrebuchetError? {
        read { contents in
            if case .ended(.failed(let error)) = contents.phase { return error }
            if let undecodable = contents.undecodable { return undecodable }
            guard contents.source == nil else { return nil }
            return TrebuchetError(
                .unavailable,
                "no client is set to observe '\(name)': pass one to @ObservedActor, or set TrebuchetClient.default")
        }
    }

    /// The `connectionState` of the client; disconnected without a client.
    public var connectionState: TrebuchetClient.ConnectionState { read { $0.connectionState } }

    private func read<Result: Sendable>(_ part: (Contents) -> Result) -> Result {
        isStarted().registrar.access(ObserverRegistrar(), keyPath: \.progress)
        return contents.withLock { part($0) }
    }

    // MARK: Starting

    /// Uses this client from now on, and connects it if necessary. With another client than before the value becomes nil.
    public func connect(_ client: TrebuchetClient) {
        setClient(client, .user)
        // A client that was set before may have stopped reconnecting.
        client.connectIfNeeded()
    }

    /// Restarts the observation after an `error`, or after the server has ended the stream. The value stays until a newer one
    /// arrives.
    ///
    /// Does nothing while the state is being observed or without a client.
    public func retry() {
        let hasEnded = contents.withLock { contents in
            guard case .ended = contents.phase else { return false }
            contents.phase = .idle
            return true
        }
        guard hasEnded else { return }
        startObserving()
        registrar.withMutation(of: ObserverRegistrar(), keyPath: \.progress) {}
    }

    /// Uses this client unless one with precedence is set.
    func setClient(_ client: TrebuchetClient, _ origin: ClientOrigin) {
        let isWanted = contents.withLock { contents in
            guard origin.rawValue >= contents.origin.rawValue else { return false }
            guard contents.source?.client !== client else {
                contents.origin = origin
                return false
            }
            return true
        }
        guard isWanted else { return }
        let source = ObservationTarget<A>(name, at: client)
        // The replaced state is released outside the lock.
        let replaced = contents.withLock { contents in
            let replaced = contents
            contents = Contents(source, origin)
            contents.run = replaced.run + 1
            return replaced
        }
        for task in replaced.tasks { task.cancel() }
        startObserving()
        registrar.withMutation(of: ObserverRegistrar(), keyPath: \.value) {}
        registrar.withMutation(of: ObserverRegistrar(), keyPath: \.progress) {}
    }

    /// Returns the observer after starting the observation, if there is a client.
    private func isStarted() -> Self {
        startObserving()
        return self
    }

    private func startObserving() {
        if contents.withLock({ $0.source == nil }), let client = DefaultClient.shared.client {
            setClient(client, .processDefault)
        }
        let replaced = contents.withLock { contents -> [Task<Void, Never>] in
            guard contents.phase == .idle, let source = contents.source else { return [] }
            let replaced = contents.tasks
            contents.phase = .following
            contents.run += 1
            contents.tasks = follow(source, contents.run)
            return replaced
        }
        for task in replaced { task.cancel() }
    }

    // MARK: Observing

    /// Starts the tasks of the observation. They do not retain the observer, which cancels them when it is freed.
    private func follow(_ source: ObservationTarget<A>, _ run: UInt64) -> [Task<Void, Never>] {
        let (path, states) = (path, source.connectionStates)
        let connection = Task.detached { [weak self] in
            for await _ in states.stream { await self?.change(run) { _ in } }
        }
        // Values are decoded in this task, not on the main actor.
        let values = Task.detached { [weak self] in
            // The connection is not awaited here, because that cannot be cancelled.
            source.client?.connectIfNeeded()
            while true {
                let end: StreamOutcome
                switch source.actor {
                case .failure(let error): end = .failed(error)
                case .success(let actor):
                    let stream = await actor[keyPath: path]()
                    self?.follow(stream, run)
                    var values = stream.makeAsyncIterator()
                    while let version = await values.nextVersion(isolation: nil) {
                        switch version {
                        case .success(let value): await self?.publishValue(value, values.seen, run)
                        case .failure(let error): await self?.change(run) { $0.undecodable = error }
                        }
                    }
                    // No outcome: the task was cancelled.
                    guard let outcome = stream.outcome else { return }
                    end = outcome
                }
                await self?.change(run) {
                    $0.phase = .ended(end)
                    ($0.stream, $0.undecodable) = (nil, nil)
                }
                guard case .failed(let error) = end, await states.waitsForRetry(after: error) else { return }
                await self?.change(run) { $0.phase = .following }
            }
        }
        return [connection, values]
    }

    private func follow(_ stream: StateStream<Value>, _ run: UInt64) {
        contents.withLock { contents in
            guard contents.run == run else { return }
            (contents.stream, contents.shown) = (stream, 0)
        }
    }

    /// Publishes a value on the main actor.
    ///
    /// - Parameter count: the number of the value in the stream. A reader may have taken it, or a newer one, before the main
    ///   actor was available.
    @MainActor private func publishValue(_ value: Value, _ count: UInt64, _ run: UInt64) {
        let isTaken = change(run) { contents in
            if count > contents.shown { (contents.value, contents.shown) = (value, count) }
            contents.undecodable = nil
        }
        guard isTaken else { return }
        registrar.withMutation(of: ObserverRegistrar(), keyPath: \.value) {}
    }

    /// Changes the state and updates the connection state. Returns false if another observation has replaced this one.
    @discardableResult
    @MainActor private func change(_ run: UInt64, _ body: (inout Contents) -> Void) -> Bool {
        // The old state is released outside the lock: the `deinit` of its value may use this observer.
        let change = contents.withLock { contents -> (old: Contents, new: Contents)? in
            guard contents.run == run, let source = contents.source else { return nil }
            let old = contents
            body(&contents)
            contents.connectionState = source.connectionStates.currentValue
            return (old, contents)
        }
        guard let (old, new) = change else { return false }
        if old.phase != new.phase || old.connectionState != new.connectionState || old.undecodable != new.undecodable
            || (old.value == nil) != (new.value == nil)
        {
            registrar.withMutation(of: ObserverRegistrar(), keyPath: \.progress) {}
        }
        return true
    }
}

/// The key paths for Observation. The observer itself is generic, so its key paths would be created at each access.
private struct ObserverRegistrar: Observable {
    var value: Void { () }
    /// All properties except the value.
    var progress: Void { () }
}
