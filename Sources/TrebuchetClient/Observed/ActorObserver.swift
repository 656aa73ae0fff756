public import Distributed
public import Observation
internal import Relays
internal import Synchronization

/// An actor whose state is observed, and how that goes: `$state` of an ``ObservedActor``.
///
/// All of it may be read from anywhere, and reading is noticed by Observation. What comes of the network changes on the
/// main actor. Observers are told after a change, so that whoever looks again then sees it.
public final class ActorObserver<A: DistributedActor, Value: Codable & Sendable>: Observable, Sendable
where A.ActorSystem == TrebuchetActorSystem {
    /// Who has said which client to use; the later one counts more.
    enum ClientOrigin: Int {
        case nobody, processDefault, environment, user
    }

    private enum Phase: Equatable {
        case idle
        case following
        case ended(StreamOutcome)
    }

    private struct Contents: Sendable {
        var source: ActorSource<A>?
        var origin = ClientOrigin.nobody
        var value: Value?
        /// What is being followed, and which of its values is shown.
        var stream: StateStream<Value>?
        var shown: UInt64 = 0
        var phase = Phase.idle
        /// Why the newest version does not decode.
        var undecodable: TrebuchetError?
        var connectionState = TrebuchetClient.ConnectionState.disconnected(nil)
        /// Grows with each beginning: what an earlier one still tells does not count.
        var run: UInt64 = 0
        var tasks: [Task<Void, Never>] = []

        init(_ source: ActorSource<A>? = nil, _ origin: ClientOrigin = .nobody) {
            self.source = source
            self.origin = origin
            if let source { connectionState = source.connectionStates.currentValue }
        }

        var isConnected: Bool { connectionState == .connected || connectionState == .draining }
    }

    private let name: String
    private let path: any KeyPath<A, StateObservation<A, Value>> & Sendable
    /// The system of the client or actor that it was made with.
    private let givenSystem: ObjectIdentifier?
    private let contents: Mutex<Contents>
    private let registrar = ObservationRegistrar()

    init(
        _ name: String, _ path: any KeyPath<A, StateObservation<A, Value>> & Sendable, client: TrebuchetClient?
    ) {
        self.name = name
        self.path = path
        givenSystem = client.map { ObjectIdentifier($0.actorSystem) }
        contents = Mutex(client.map { Contents(ActorSource(name, at: $0), .user) } ?? Contents())
    }

    init(_ actor: A, _ path: any KeyPath<A, StateObservation<A, Value>> & Sendable) {
        name = actor.id.id
        self.path = path
        givenSystem = ObjectIdentifier(actor.actorSystem)
        contents = Mutex(Contents(ActorSource(actor), .user))
    }

    deinit {
        for task in contents.withLock({ $0.tasks }) { task.cancel() }
    }

    /// Whether both were made to observe the same.
    func observesTheSame(as other: ActorObserver) -> Bool {
        name == other.name && path as AnyKeyPath == other.path as AnyKeyPath && givenSystem == other.givenSystem
    }

    // MARK: Reading

    /// The newest value; nil until the first one has come. It stays when the connection breaks or the stream fails.
    ///
    /// Once there is one, of an actor at a server, it is never older than what a call of this client has seen when it returned:
    /// who changes the state by a call finds the change here, wherever it looks.
    public var value: Value? {
        begun().registrar.access(ObservedParts(), keyPath: \.value)
        let (stream, shown) = contents.withLock { ($0.stream, $0.shown) }
        // A newer one may have come and not been taken yet: that needs this thread, if it is the main actor's. With the first
        // one more changes than the value.
        guard let stream, shown > 0, let newest = stream.newest(after: shown) else {
            return contents.withLock { $0.value }
        }
        // The old value is taken out of the lock, as below.
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

    /// The actor, to be called; nil without a client.
    public var actor: A? { read { try? $0.source?.actor.get() } }

    /// Whether a value is waited for: the first one, or those that come when a broken connection has been made again.
    ///
    /// False when the observation has failed; then there is an `error`.
    public var isConnecting: Bool {
        read { $0.phase == .following && ($0.value == nil && $0.undecodable == nil || !$0.isConnected) }
    }

    /// Why there are no newer values; nil while they are waited for, and when the server has ended the stream in order.
    ///
    /// `actorNotFound`, for example, lasts until ``retry()``. `unavailable` is there when there is no client, or the client
    /// has given up, because the server is not there or does not let it in (`connectionState` has the details); it goes as
    /// soon as there is one, or the client is connecting again. A version that does not decode leaves the value before in place, and
    /// its error lasts until one comes that does.
    public var error: TrebuchetError? {
        read { contents in
            if case .ended(.failed(let error)) = contents.phase { return error }
            if let undecodable = contents.undecodable { return undecodable }
            guard contents.source == nil else { return nil }
            return TrebuchetError(
                .unavailable,
                "there is no client to observe '\(name)' with: give @ObservedActor one, or set TrebuchetClient.default")
        }
    }

    /// How the client stands with its server: its `connectionState`. Without a client, disconnected.
    public var connectionState: TrebuchetClient.ConnectionState { read { $0.connectionState } }

    private func read<Result: Sendable>(_ part: (Contents) -> Result) -> Result {
        begun().registrar.access(ObservedParts(), keyPath: \.progress)
        return contents.withLock { part($0) }
    }

    // MARK: Beginning

    /// Observes with this client from now on, and connects it if it is not connected. With another client than before
    /// the value is nil again.
    public func connect(_ client: TrebuchetClient) {
        use(client, .user)
        // The same one may have given up.
        client.connectIfNeeded()
    }

    /// Begins again after an `error`, or after the server has ended the stream. The value stays until a newer one comes.
    ///
    /// Does nothing while the state is being observed or there is no client.
    public func retry() {
        let hasEnded = contents.withLock { contents in
            guard case .ended = contents.phase else { return false }
            contents.phase = .idle
            return true
        }
        guard hasEnded else { return }
        begin()
        registrar.withMutation(of: ObservedParts(), keyPath: \.progress) {}
    }

    /// Observes with this client, unless one that counts more has been given.
    func use(_ client: TrebuchetClient, _ origin: ClientOrigin) {
        let isWanted = contents.withLock { contents in
            guard origin.rawValue >= contents.origin.rawValue else { return false }
            guard contents.source?.client !== client else {
                contents.origin = origin
                return false
            }
            return true
        }
        guard isWanted else { return }
        let source = ActorSource<A>(name, at: client)
        // Taken out of the lock before it is freed.
        let replaced = contents.withLock { contents in
            let replaced = contents
            contents = Contents(source, origin)
            contents.run = replaced.run + 1
            return replaced
        }
        for task in replaced.tasks { task.cancel() }
        begin()
        registrar.withMutation(of: ObservedParts(), keyPath: \.value) {}
        registrar.withMutation(of: ObservedParts(), keyPath: \.progress) {}
    }

    /// The same, which has begun if there is a client.
    private func begun() -> Self {
        begin()
        return self
    }

    private func begin() {
        if contents.withLock({ $0.source == nil }), let client = DefaultClient.shared.client {
            use(client, .processDefault)
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

    // MARK: Following

    /// Tasks that do not hold this observer: it may go while they wait, and cancels them then.
    private func follow(_ source: ActorSource<A>, _ run: UInt64) -> [Task<Void, Never>] {
        let (path, states) = (path, source.connectionStates)
        let connection = Task.detached { [weak self] in
            for await _ in states.stream { await self?.change(run) { _ in } }
        }
        // Values are decoded in this task, not on the main actor.
        let values = Task.detached { [weak self] in
            // Nothing here waits for the connection itself, which cannot be cancelled.
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
                        case .success(let value): await self?.take(value, values.seen, run)
                        case .failure(let error): await self?.change(run) { $0.undecodable = error }
                        }
                    }
                    // None: the task was cancelled.
                    guard let outcome = stream.outcome else { return }
                    end = outcome
                }
                await self?.change(run) {
                    $0.phase = .ended(end)
                    ($0.stream, $0.undecodable) = (nil, nil)
                }
                guard case .failed(let error) = end, await states.comesBack(after: error) else { return }
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

    /// - Parameter count: which value of the stream it is. Whoever looked may have seen it, or a newer one, before the main
    ///   actor had time for it.
    @MainActor private func take(_ value: Value, _ count: UInt64, _ run: UInt64) {
        let isTaken = change(run) { contents in
            if count > contents.shown { (contents.value, contents.shown) = (value, count) }
            contents.undecodable = nil
        }
        guard isTaken else { return }
        registrar.withMutation(of: ObservedParts(), keyPath: \.value) {}
    }

    /// Changes what is shown, and with it the state of the connection to the one of now. False when another run counts.
    @discardableResult
    @MainActor private func change(_ run: UInt64, _ body: (inout Contents) -> Void) -> Bool {
        // The old value is taken out of the lock: its `deinit` may be code that uses this observer.
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
            registrar.withMutation(of: ObservedParts(), keyPath: \.progress) {}
        }
        return true
    }
}

/// What Observation sees of an observer. Not the observer, whose type is generic: a key path into it would be made anew at each reading.
private struct ObservedParts: Observable {
    var value: Void { () }
    /// All but the value.
    var progress: Void { () }
}
