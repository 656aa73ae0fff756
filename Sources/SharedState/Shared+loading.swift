extension Shared {
    /// Makes the wrapper and its copies refer to the value of another key, and loads it; returns when it is there.
    ///
    /// It begins with the value of before, which stays when the key has none. Throws what the key fails with, which is then in
    /// `loadError`, and `CancellationError` when the task is cancelled; the load goes on.
    ///
    /// - Parameter store: Where the value is looked up. Default: ``SharedStore/current``.
    public func load<Key: SharedKey<Value>>(
        _ key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let value = wrappedValue
        let (new, outcome) = store.loading(key) { value }
        reference = new
        try await outcome.get()
    }

    /// Makes the wrapper and its copies refer to the value of a key that knows what to begin with; see ``load(_:store:isolation:)``.
    public func load<Key: SharedKey<Value>>(
        _ key: SharedKeyDefault<Key>, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let (new, outcome) = store.loading(key.base, initialValue: key.makeValue)
        reference = new
        try await outcome.get()
    }

    /// Refers to the value of a key once that is loaded. Throws what loading fails with, and ``MissingValue`` when there is none.
    ///
    /// - Parameter store: Where the value is looked up. Default: ``SharedStore/current``.
    public init<Key: SharedKey<Value>>(
        require key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        self.init(reference: try await store.required(key, isolation: isolation))
    }
}

extension SharedReader {
    /// Makes the wrapper and its copies refer to the value of another key, and loads it; returns when it is there.
    ///
    /// It begins with the value of before, which stays when the key has none. Throws what the key fails with, which is then in
    /// `loadError`, and `CancellationError` when the task is cancelled; the load goes on.
    ///
    /// - Parameter store: Where the value is looked up. Default: ``SharedStore/current``.
    public func load<Key: SharedReaderKey<Value>>(
        _ key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let value = wrappedValue
        let (new, outcome) = store.loading(key) { value }
        reference = new
        try await outcome.get()
    }

    /// Makes the wrapper and its copies refer to the value of a key that knows what to begin with; see ``load(_:store:isolation:)``.
    public func load<Key: SharedReaderKey<Value>>(
        _ key: SharedKeyDefault<Key>, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let (new, outcome) = store.loading(key.base, initialValue: key.makeValue)
        reference = new
        try await outcome.get()
    }

    /// Refers to the value of a key once that is loaded. Throws what loading fails with, and ``MissingValue`` when there is none.
    ///
    /// - Parameter store: Where the value is looked up. Default: ``SharedStore/current``.
    public init<Key: SharedReaderKey<Value>>(
        require key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        self.init(reference: try await store.required(key, isolation: isolation))
    }
}
