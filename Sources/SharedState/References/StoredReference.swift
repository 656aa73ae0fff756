internal import Observation
internal import Relays
internal import Synchronization

/// A value with its key: loads, subscribes, saves, and tells who reads it of changes.
///
/// Three locks. `turn` is held while a caller changes its copy of the value, so that versions come in the order of turns;
/// `contents` and that of `newest`, always in this order, only to look or to store, and while they are held no code of others
/// runs: values are released, observers told and keys called afterwards.
final class StoredReference<Value: Sendable>: MutableReference {
    private struct Contents: Sendable {
        var loads = Attempts()
        var saves = Attempts()
        var saveQueue = SaveQueue()
        var isSubscriptionLoading = false
        var loadError: (any Error)?
        var saveError: (any Error)?
        var subscription: SharedSubscription?
    }

    let initialValue: Value
    @MainActor let operations = OperationRecords()
    let key: (any SharedReaderKey<Value>)?
    private let id: SendableKey?
    private let store: SharedStore
    private let contents = Mutex(Contents())
    private let turn = Turn()
    /// The value.
    private let newest: StateRelay<Value>
    private let registrar = ObservationRegistrar()

    /// A reference without a key: the value alone.
    convenience init(_ value: Value) { self.init(value, key: nil, id: nil, store: .current) }

    init(_ value: Value, key: (any SharedReaderKey<Value>)?, id: SendableKey?, store: SharedStore) {
        initialValue = value
        self.key = key
        self.id = id
        self.store = store
        newest = StateRelay(value)
    }

    deinit {
        if let id { store.remove(ObjectIdentifier(self), for: id) }
        contents.withLock { $0.subscription.take() }?.cancel()
    }

    // MARK: Reading

    // An observer registers before it looks, and is told after a change: it never misses one, on whatever thread.

    var value: Value {
        registrar.access(Observed(), keyPath: \.value)
        return newest.currentValue
    }

    var isLoading: Bool {
        registrar.access(Observed(), keyPath: \.progress)
        return contents.withLock { $0.loads.pendingCount > 0 || $0.isSubscriptionLoading }
    }

    var loadError: (any Error)? {
        registrar.access(Observed(), keyPath: \.progress)
        return contents.withLock { $0.loadError }
    }

    var saveError: (any Error)? {
        registrar.access(Observed(), keyPath: \.progress)
        return contents.withLock { $0.saveError }
    }

    var updates: SharedUpdates<Value> { SharedUpdates(newest.stream) }

    var text: String { key.map { "\($0)" } ?? "value: \(String(reflecting: value))" }

    // MARK: Changing

    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result {
        let (result, replaced) = try turn.take {
            var copy = newest.currentValue
            let result = try body(&copy)
            return (result, exchange(copy))
        }
        tell(replaced)
        if saves, key is any SharedKey<Value> { save(.didSet) }
        return result
    }

    /// Returns the value that was there, to be released once the turn is over.
    private func exchange(_ value: Value) -> Value {
        newest.update { newest in
            defer { newest = value }
            return newest
        }
    }

    /// Tells observers of a change whose turn is over.
    private func tell(_ replaced: Value) {
        _ = replaced
        registrar.withMutation(of: Observed(), keyPath: \.value) {}
    }

    private func changeProgress(_ body: (inout Contents) -> Void) {
        contents.withLock { body(&$0) }
        registrar.withMutation(of: Observed(), keyPath: \.progress) {}
    }

    // MARK: Loading

    func load(isolation: isolated (any Actor)?) async throws {
        try await outcome { load(.userInitiated, whenDone: $0) }
    }

    func load(
        _ context: LoadContext<Value>, whenDone: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        guard let key else { return whenDone(.success(())) }
        let (number, version) = contents.withLock { ($0.loads.begin(), newest.version) }
        registrar.withMutation(of: Observed(), keyPath: \.progress) {}
        let continuation = LoadContinuation<Value> { [weak self] result in
            self?.endLoad(number, begunAt: version, result)
            whenDone(result.map { _ in })
        }
        SharedStore.$current.withValue(store) { key.load(context: context, continuation: continuation) }
    }

    /// A load does not undo what was set or sent after it began: what it read may be older.
    private func endLoad(_ number: UInt64, begunAt version: UInt64, _ result: Result<Value?, any Error>) {
        let replaced: Value? = turn.take {
            let isWanted = contents.withLock { contents in
                guard contents.loads.end(number) else { return false }
                contents.loadError = result.failure
                return newest.version == version
            }
            guard isWanted, case .success(let value) = result else { return nil }
            return self.exchange(value ?? initialValue)
        }
        if let replaced { tell(replaced) }
        registrar.withMutation(of: Observed(), keyPath: \.progress) {}
    }

    func subscribe() {
        guard let key else { return }
        let subscriber = SharedSubscriber<Value> { [weak self] in self?.receive($0) }
        let subscription = SharedStore.$current.withValue(store) {
            key.subscribe(context: .initialValue(initialValue), subscriber: subscriber)
        }
        contents.withLock { $0.subscription = subscription }
    }

    private func receive(_ message: SharedSubscriber<Value>.Message) {
        switch message {
        case .change(let body): receive(body)
        case .initialValue: receive { [initialValue] in $0 = initialValue }
        case .failure(let error):
            changeProgress {
                $0.loadError = error
                $0.isSubscriptionLoading = false
            }
        case .loading(let isLoading):
            changeProgress { $0.isSubscriptionLoading = isLoading }
        }
    }

    private func receive(_ body: (inout Value) -> Void) {
        change(saves: false, body)
        changeProgress {
            $0.loadError = nil
            $0.isSubscriptionLoading = false
        }
    }

    // MARK: Saving

    func save(isolation: isolated (any Actor)?) async throws {
        try await outcome { save(.userInitiated, whenDone: $0) }
    }

    private func save(_ context: SaveContext, whenDone: SaveQueue.Waiter? = nil) {
        guard let key = key as? any SharedKey<Value> else {
            whenDone?(.success(()))
            return
        }
        guard contents.withLock({ $0.saveQueue.add(context, whenDone) }) else { return }
        while let (save, number, value) = nextSave() {
            let continuation = SaveContinuation { [weak self] result in
                self?.endSave(number, result)
                for waiter in save.waiters { waiter(result) }
            }
            SharedStore.$current.withValue(store) {
                key.save(value, context: save.context, continuation: continuation)
            }
        }
    }

    private func nextSave() -> (SaveQueue.Save, UInt64, Value)? {
        contents.withLock { contents in
            contents.saveQueue.next().map { ($0, contents.saves.begin(), newest.currentValue) }
        }
    }

    private func endSave(_ number: UInt64, _ result: Result<Void, any Error>) {
        changeProgress { contents in
            guard contents.saves.end(number) else { return }
            contents.saveError = result.failure
        }
    }

    /// Waits for what `start` tells; a cancelled task waits no longer.
    private func outcome(
        isolation: isolated (any Actor)? = #isolation,
        of start: (@escaping @Sendable (Result<Void, any Error>) -> Void) -> Void
    ) async throws {
        let outcome = Outcome<Void>()
        start { outcome.set($0) }
        try await outcome.get()
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
