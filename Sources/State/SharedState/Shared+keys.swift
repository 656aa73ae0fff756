extension Shared {
    /// Refers to the value of a key.
    ///
    /// - Parameters:
    ///   - wrappedValue: The initial value when there is none to load; evaluated only by the first wrapper.
    ///   - store: The table of shared values. Default: ``SharedStore/current``.
    public init<Key: SharedKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: Key, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key, initialValue: wrappedValue))
    }

    /// Refers to the value of a key that has an initial value.
    public init<Key: SharedKey<Value>>(_ key: SharedKeyDefault<Key>, store: SharedStore = .current) {
        self.init(reference: store.reference(for: key.base, initialValue: key.makeValue))
    }

    /// Refers to the value of a key, with another initial value than the key's own.
    public init<Key: SharedKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: SharedKeyDefault<Key>, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key.base, initialValue: wrappedValue))
    }

    /// Refers to the value of a key; nil when there is none to load.
    @_disfavoredOverload  // A key with a default for an optional value begins with that.
    public init<Wrapped, Key: SharedKey<Value>>(_ key: Key, store: SharedStore = .current) where Value == Wrapped? {
        self.init(reference: store.reference(for: key) { nil })
    }

    /// Unavailable: a non-optional value needs an initial value.
    @available(
        *, unavailable, message: "add an initial value: '@Shared(…) var name = value', or make it optional"
    )
    @_disfavoredOverload
    public init<Key: SharedKey<Value>>(_ key: Key, store: SharedStore = .current) { fatalError("unavailable") }
}

extension SharedReader {
    /// Refers to the value of a key.
    ///
    /// - Parameters:
    ///   - wrappedValue: The initial value when there is none to load; evaluated only by the first wrapper.
    ///   - store: The table of shared values. Default: ``SharedStore/current``.
    public init<Key: SharedReaderKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: Key, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key, initialValue: wrappedValue))
    }

    /// Refers to the value of a key that has an initial value.
    public init<Key: SharedReaderKey<Value>>(_ key: SharedKeyDefault<Key>, store: SharedStore = .current) {
        self.init(reference: store.reference(for: key.base, initialValue: key.makeValue))
    }

    /// Refers to the value of a key, with another initial value than the key's own.
    public init<Key: SharedReaderKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: SharedKeyDefault<Key>, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key.base, initialValue: wrappedValue))
    }

    /// Refers to the value of a key; nil when there is none to load.
    @_disfavoredOverload  // A key with a default for an optional value begins with that.
    public init<Wrapped, Key: SharedReaderKey<Value>>(
        _ key: Key, store: SharedStore = .current
    ) where Value == Wrapped? {
        self.init(reference: store.reference(for: key) { nil })
    }

    /// Unavailable: a non-optional value needs an initial value.
    @available(
        *, unavailable,
        message: "add an initial value: '@SharedReader(…) var name = value', or make it optional"
    )
    @_disfavoredOverload
    public init<Key: SharedReaderKey<Value>>(_ key: Key, store: SharedStore = .current) { fatalError("unavailable") }
}

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
