extension Shared {
    /// Makes the wrapper and its copies refer to the value of another key, and loads it. Returns after the load.
    ///
    /// It begins with the earlier value, which stays when the key has none. Throws the error of the key, which is then
    /// in `loadError`, and `CancellationError` when the task is cancelled; the load continues.
    ///
    /// - Parameter store: The table of shared values. Default: ``SharedStore/current``.
    public func load<Key: SharedKey<Value>>(
        _ key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let value = wrappedValue
        let (new, outcome) = store.loading(key) { value }
        reference = new
        try await outcome.get()
    }

    /// Makes the wrapper and its copies refer to the value of a key that has an initial value; see
    /// ``load(_:store:isolation:)``.
    public func load<Key: SharedKey<Value>>(
        _ key: SharedKeyDefault<Key>, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let (new, outcome) = store.loading(key.base, initialValue: key.makeValue)
        reference = new
        try await outcome.get()
    }

    /// Refers to the value of a key after its load. Throws the error of the load, and ``MissingValue`` when there is
    /// no value.
    ///
    /// - Parameter store: The table of shared values. Default: ``SharedStore/current``.
    public init<Key: SharedKey<Value>>(
        require key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        self.init(reference: try await store.required(key, isolation: isolation))
    }
}

extension SharedReader {
    /// Makes the wrapper and its copies refer to the value of another key, and loads it. Returns after the load.
    ///
    /// It begins with the earlier value, which stays when the key has none. Throws the error of the key, which is then
    /// in `loadError`, and `CancellationError` when the task is cancelled; the load continues.
    ///
    /// - Parameter store: The table of shared values. Default: ``SharedStore/current``.
    public func load<Key: SharedReaderKey<Value>>(
        _ key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let value = wrappedValue
        let (new, outcome) = store.loading(key) { value }
        reference = new
        try await outcome.get()
    }

    /// Makes the wrapper and its copies refer to the value of a key that has an initial value; see
    /// ``load(_:store:isolation:)``.
    public func load<Key: SharedReaderKey<Value>>(
        _ key: SharedKeyDefault<Key>, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let (new, outcome) = store.loading(key.base, initialValue: key.makeValue)
        reference = new
        try await outcome.get()
    }

    /// Refers to the value of a key after its load. Throws the error of the load, and ``MissingValue`` when there is
    /// no value.
    ///
    /// - Parameter store: The table of shared values. Default: ``SharedStore/current``.
    public init<Key: SharedReaderKey<Value>>(
        require key: Key, store: SharedStore = .current, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        self.init(reference: try await store.required(key, isolation: isolation))
    }
}
