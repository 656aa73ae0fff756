internal import Observation
internal import Relays
internal import Synchronization

/// A value with its key: loads, subscribes, saves, and notifies readers of changes.
///
/// It has three locks:
/// - `writerLock` is held while a caller changes its copy of the value, so that versions have the order of turns.
/// - The locks of `contents` and `newest`, always in this order, are held only for reads and writes, without calls to
///   foreign code. Values are released, observers notified and keys called afterwards.
final class StoredReference<Value: Sendable>: MutableReference {
    /// The progress of loads and saves, and the subscription, under the lock.
    private struct Contents: Sendable {
        var loads = AttemptCounter()
        var saves = AttemptCounter()
        var saveQueue = SaveQueue()
        var isSubscriptionLoading = false
        var loadError: (any Error)? {
            didSet { hasFailedSinceSave = loadError != nil }
        }
        /// True if the error came after the newest save began.
        var hasFailedSinceSave = false
        var saveError: (any Error)?
        var subscription: SharedSubscription?
        /// Loads that have become the value.
        var acceptedLoads: UInt64 = 0
        /// Reads of the subscription that have become the value or an error.
        var acceptedReads: UInt64 = 0
        /// Reads again after the key has received the pending changes.
        var waitingRead: (@Sendable () -> Void)?
    }

    let initialValue: Value
    @MainActor private let records = OperationRecords()
    let key: (any SharedReaderKey<Value>)?
    /// The key, if it can save.
    private let savingKey: (any SharedKey<Value>)?
    /// The seen file content, for a key that may store the value in a file.
    private let observed: ObservedFileContent?
    private let id: SendableKey?
    private let store: SharedStore
    private let contents = Mutex(Contents())
    private let writerLock = WriterLock()
    /// The value.
    private let newest: StateRelay<Value>
    private let registrar = ObservationRegistrar()

    /// Creates a reference without a key: the value alone.
    convenience init(_ value: Value) { self.init(value, key: nil, id: nil, store: .current) }

    /// Creates a reference.
    ///
    /// - Parameter observed: the file content that the key had observed when it loaded the value; nil before that.
    init(
        _ value: Value, key: (any SharedReaderKey<Value>)?, id: SendableKey?, store: SharedStore,
        observed: ObservedFileContent? = nil
    ) {
        initialValue = value
        self.key = key
        savingKey = key as? any SharedKey<Value>
        self.observed = key == nil ? nil : observed ?? ObservedFileContent()
        self.id = id
        self.store = store
        newest = StateRelay(value)
    }

    deinit {
        if let id { store.remove(ObjectIdentifier(self), for: id) }
        contents.withLock { $0.subscription.take() }?.cancel()
    }

    // MARK: Reading

    // An observer registers before it reads, and is notified after a change: on the actor that changes the value it
    // never misses one.

    var value: Value {
        registrar.access(SharedObservation(), keyPath: \.value)
        return SharedChanges.isViewed ? expected : newest.currentValue
    }

    var current: VersionedSnapshot<Value> {
        registrar.access(SharedObservation(), keyPath: \.value)
        // The value that a test expects is older than any published version.
        if SharedChanges.isViewed { return VersionedSnapshot(value: expected, version: 0) }
        let (value, version) = newest.current
        return VersionedSnapshot(value: value, version: version)
    }

    @MainActor var operations: OperationScope { OperationScope(records) }

    var isLoading: Bool {
        registrar.access(SharedObservation(), keyPath: \.progress)
        return contents.withLock { $0.loads.pendingCount > 0 || $0.isSubscriptionLoading }
    }

    var loadError: (any Error)? {
        registrar.access(SharedObservation(), keyPath: \.progress)
        return contents.withLock { $0.loadError }
    }

    var saveError: (any Error)? {
        registrar.access(SharedObservation(), keyPath: \.progress)
        return contents.withLock { $0.saveError }
    }

    var updates: SharedUpdates<Value> { SharedUpdates(newest.stream) }

    private var name: String { key.map { "\($0)" } ?? "a shared \(Value.self)" }

    var text: String { key.map { "\($0)" } ?? "value: \(String(reflecting: value))" }

    // MARK: Changing

    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result {
        if saves, SharedChanges.isViewed { return try expect(body) }
        let (result, replaced, mustSave) = try writerLock.withLock {
            var copy = newest.currentValue
            let result = try body(&copy)
            let replaced = exchange(copy)
            if saves, SharedChanges.isRecording { recordChange(from: replaced, to: copy) }
            // In the same turn, so that no thread finds a change that is not on its way to the key: an earlier read
            // would undo it.
            let mustSave = saves && savingKey != nil && contents.withLock { $0.saveQueue.enqueueSave(.didSet, nil) }
            return (result, replaced, mustSave)
        }
        if mustSave { runSaves() }
        notifyObservers(of: replaced)
        return result
    }

    // For test stores. Not inlined: the types generic over `Value` would be looked up at each read of the value.

    /// The value expected by the asserting test.
    private var expected: Value {
        @inline(never) get {
            let change: SharedChange<Value>? = SharedChanges.viewer?.change(of: self)
            return change?.expected ?? newest.currentValue
        }
    }

    @inline(never)
    private func expect<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        guard let viewer = SharedChanges.viewer else { preconditionFailure("the value must exist") }
        return try viewer.expect(self, now: newest.currentValue, named: name, body)
    }

    @inline(never)
    private func recordChange(from before: Value, to after: Value) {
        SharedChanges.recorder?.recordChange(self, from: before, to: after, named: name)
    }

    /// Returns the replaced value, to be released after the turn.
    private func exchange(_ value: Value) -> Value {
        newest.update { newest in
            defer { newest = value }
            return newest
        }
    }

    /// Notifies observers of a change after its turn.
    private func notifyObservers(of replaced: Value) {
        _ = replaced
        registrar.withMutation(of: SharedObservation(), keyPath: \.value) {}
    }

    private func changeProgress(_ body: (inout Contents) -> Void) {
        contents.withLock { body(&$0) }
        registrar.withMutation(of: SharedObservation(), keyPath: \.progress) {}
    }

    // MARK: Loading

    func load(isolation: isolated (any Actor)?) async throws {
        try await outcome { whenDone in
            load(.userInitiated) { reading in whenDone(reading.result.map { _ in }) }
        }
    }

    /// Loads the value. Throws ``MissingValue`` when there is none: the value then stays.
    func require(isolation: isolated (any Actor)?) async throws {
        try await outcome { whenDone in
            load(.userInitiated, isRequired: true) { [text] reading in
                whenDone(reading.result.flatMap { $0 == nil ? .failure(MissingValue(key: text)) : .success(()) })
            }
        }
    }

    /// Loads the value.
    ///
    /// - Parameter isRequired: whether the value stays when there is none to load. Otherwise it becomes the initial
    ///   one.
    func load(
        _ context: LoadContext<Value>, isRequired: Bool = false,
        whenDone: @escaping @Sendable (VersionedRead<Value>) -> Void = { _ in }
    ) {
        guard let key, let observed else { return whenDone(VersionedRead(.success(nil))) }
        let (number, start) = contents.withLock { ($0.loads.startAttempt(), readVersion(of: $0)) }
        registrar.withMutation(of: SharedObservation(), keyPath: \.progress) {}
        let continuation = LoadContinuation<Value>(observed: observed) { [weak self] reading in
            self?.endLoad(number, startedAt: start, isRequired, reading)
            whenDone(reading)
        }
        SharedStore.$current.withValue(store) { key.load(context: context, continuation: continuation) }
    }

    /// Ends a load. A load does not undo changes, saves and updates made after it began, because its result may be
    /// older.
    private func endLoad(
        _ number: UInt64, startedAt start: ReadVersion?, _ isRequired: Bool, _ reading: VersionedRead<Value>
    ) {
        let replaced: Value? = writerLock.withLock {
            contents.withLock { contents in
                guard contents.loads.endAttempt(number) else { return nil }
                contents.loadError = reading.error
                guard let start, let now = readVersion(of: contents), now.isLast(since: start) else { return nil }
                if isRequired, case .success(nil) = reading.result { return nil }
                reading.onAccept?()
                guard case .success(let value) = reading.result else { return nil }
                contents.acceptedLoads += 1
                return exchange(value ?? initialValue)
            }
        }
        if let replaced { notifyObservers(of: replaced) }
        registrar.withMutation(of: SharedObservation(), keyPath: \.progress) {}
    }

    /// Returns the counters. Nil while a change is on its way to the key: the key's reads may then be older than the
    /// value.
    private func readVersion(of contents: Contents) -> ReadVersion? {
        guard contents.saveQueue.isEmpty else { return nil }
        return ReadVersion(
            changes: newest.version - contents.acceptedLoads, saves: contents.saves.lastBegun,
            loads: contents.acceptedLoads, reads: contents.acceptedReads)
    }

    private func beginRead(retry: @escaping @Sendable () -> Void) -> ReadVersion? {
        contents.withLock { contents in
            let readVersion = readVersion(of: contents)
            if readVersion == nil { contents.waitingRead = retry }
            return readVersion
        }
    }

    private func acceptRead(_ reading: VersionedRead<Value>, startedAt start: ReadVersion) -> Bool {
        let (isAccepted, replaced) = writerLock.withLock {
            contents.withLock { contents -> (Bool, Value?) in
                guard readVersion(of: contents) == start else { return (false, nil) }
                contents.acceptedReads += 1
                contents.loadError = reading.error
                contents.isSubscriptionLoading = false
                reading.onAccept?()
                guard case .success(let value) = reading.result else { return (true, nil) }
                return (true, exchange(value ?? initialValue))
            }
        }
        if let replaced { notifyObservers(of: replaced) }
        if isAccepted { registrar.withMutation(of: SharedObservation(), keyPath: \.progress) {} }
        return isAccepted
    }

    func subscribe() {
        guard let key, let observed else { return }
        let subscriber = SharedSubscriber<Value>(
            observed: observed,
            receive: { [weak self] in self?.receive($0) },
            beginRead: { [weak self] in self?.beginRead(retry: $0) },
            acceptRead: { [weak self] in self?.acceptRead($0, startedAt: $1) ?? true })
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
        try await outcome { whenDone in
            guard savingKey != nil else { return whenDone(.success(())) }
            if contents.withLock({ $0.saveQueue.enqueueSave(.userInitiated, whenDone) }) { runSaves() }
        }
    }

    /// Hands the pending saves to the key until there are no more.
    private func runSaves() {
        guard let savingKey, let observed else { return }
        while let (save, number, value) = nextSave() {
            let continuation = SaveContinuation(observed: observed) { [weak self] result in
                self?.endSave(number, result)
                for waiter in save.waiters { waiter(result) }
            }
            SharedStore.$current.withValue(store) {
                savingKey.save(value, context: save.context, continuation: continuation)
            }
        }
    }

    /// Returns the next save. At the end, a read that was postponed meanwhile runs.
    private func nextSave() -> (SaveQueue.Save, UInt64, Value)? {
        let (next, reading) = contents.withLock { contents in
            let next = contents.saveQueue.next().map { ($0, contents.saves.startAttempt(), newest.currentValue) }
            if next != nil { contents.hasFailedSinceSave = false }
            return (next, next == nil ? contents.waitingRead.take() : nil)
        }
        reading?()
        return next
    }

    private func endSave(_ number: UInt64, _ result: Result<Void, any Error>) {
        changeProgress { contents in
            guard contents.saves.endAttempt(number) else { return }
            contents.saveError = result.failure
            // The value that could not be loaded has been replaced.
            if result.failure == nil, !contents.hasFailedSinceSave { contents.loadError = nil }
        }
    }

    /// Waits for the result of `start`. Cancellation of the task ends the wait.
    private func outcome(
        isolation: isolated (any Actor)? = #isolation,
        of start: (@escaping @Sendable (Result<Void, any Error>) -> Void) -> Void
    ) async throws {
        let outcome = AwaitableOutcome<Void>()
        start { outcome.set($0) }
        try await outcome.get()
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
