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
