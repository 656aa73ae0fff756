extension Shared {
    /// Refers to the value of a key.
    ///
    /// - Parameters:
    ///   - wrappedValue: What the value is when there is none to load; asked for by the first wrapper only.
    ///   - store: Where the value is looked up. Default: ``SharedStore/current``.
    public init<Key: SharedKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: Key, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key, initialValue: wrappedValue))
    }

    /// Refers to the value of a key that knows what to begin with.
    public init<Key: SharedKey<Value>>(_ key: SharedKeyDefault<Key>, store: SharedStore = .current) {
        self.init(reference: store.reference(for: key.base, initialValue: key.makeValue))
    }

    /// Refers to the value of a key, beginning with another value than the key's own.
    public init<Key: SharedKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: SharedKeyDefault<Key>, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key.base, initialValue: wrappedValue))
    }

    /// Refers to the value of a key, nil when there is none to load.
    @_disfavoredOverload  // A key with a default for an optional value begins with that.
    public init<Wrapped, Key: SharedKey<Value>>(_ key: Key, store: SharedStore = .current) where Value == Wrapped? {
        self.init(reference: store.reference(for: key) { nil })
    }

    /// A value that is not optional has to begin with one.
    @available(
        *, unavailable, message: "give it a value to begin with: '@Shared(…) var name = value', or make it optional"
    )
    @_disfavoredOverload
    public init<Key: SharedKey<Value>>(_ key: Key, store: SharedStore = .current) { fatalError("unavailable") }
}

extension SharedReader {
    /// Refers to the value of a key.
    ///
    /// - Parameters:
    ///   - wrappedValue: What the value is when there is none to load; asked for by the first wrapper only.
    ///   - store: Where the value is looked up. Default: ``SharedStore/current``.
    public init<Key: SharedReaderKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: Key, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key, initialValue: wrappedValue))
    }

    /// Refers to the value of a key that knows what to begin with.
    public init<Key: SharedReaderKey<Value>>(_ key: SharedKeyDefault<Key>, store: SharedStore = .current) {
        self.init(reference: store.reference(for: key.base, initialValue: key.makeValue))
    }

    /// Refers to the value of a key, beginning with another value than the key's own.
    public init<Key: SharedReaderKey<Value>>(
        wrappedValue: @autoclosure () -> Value, _ key: SharedKeyDefault<Key>, store: SharedStore = .current
    ) {
        self.init(reference: store.reference(for: key.base, initialValue: wrappedValue))
    }

    /// Refers to the value of a key, nil when there is none to load.
    @_disfavoredOverload  // A key with a default for an optional value begins with that.
    public init<Wrapped, Key: SharedReaderKey<Value>>(
        _ key: Key, store: SharedStore = .current
    ) where Value == Wrapped? {
        self.init(reference: store.reference(for: key) { nil })
    }

    /// A value that is not optional has to begin with one.
    @available(
        *, unavailable,
        message: "give it a value to begin with: '@SharedReader(…) var name = value', or make it optional"
    )
    @_disfavoredOverload
    public init<Key: SharedReaderKey<Value>>(_ key: Key, store: SharedStore = .current) { fatalError("unavailable") }
}
