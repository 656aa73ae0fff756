extension Shared {
    /// The value that an optional one has, as a shared value of its own; nil when it has none.
    ///
    ///     if let user = Shared($currentUser) { edit(user) }
    ///
    /// When the value goes later, its holders keep reading the last one; what they set then is dropped.
    public init?(_ base: Shared<Value?>) {
        let reference = base.reference
        let current = reference.current
        guard let value = current.value else { return nil }
        self.init(reference: UnwrappedReference(reference, LastValue(value, version: current.version)))
    }

    /// What a closure makes of the value, to be read: it is called at each reading.
    public func read<Part: Sendable>(_ compute: @escaping @Sendable (Value) -> Part) -> SharedReader<Part> {
        SharedReader<Part>(reference: ComputedReader(reference, compute))
    }

}

extension SharedReader {
    /// The value that an optional one has, as a shared value of its own; nil when it has none.
    ///
    /// When the value goes later, its holders keep reading the last one.
    public init?(_ base: SharedReader<Value?>) {
        let reference = base.reference
        let current = reference.current
        guard let value = current.value else { return nil }
        self.init(reference: UnwrappedReader(reference, LastValue(value, version: current.version)))
    }

    /// The value that an optional one has, to be read; nil when it has none.
    public init?(_ base: Shared<Value?>) { self.init(SharedReader<Value?>(base)) }

    /// What a closure makes of the value: it is called at each reading.
    public func read<Part: Sendable>(_ compute: @escaping @Sendable (Value) -> Part) -> SharedReader<Part> {
        SharedReader<Part>(reference: ComputedReader(reference, compute))
    }

}

extension RangeReplaceableCollection {
    /// The elements that a shared array has now, each as a shared value of its own: `Array($todos)`.
    public init<ID: Sendable, Part: Sendable>(_ shared: Shared<IdentifiedArray<ID, Part>>)
    where Element == Shared<Part> {
        self.init(shared.wrappedValue.ids.compactMap { Shared(shared[id: $0]) })
    }

    /// The elements that a shared array has now, each to be read by itself.
    public init<ID: Sendable, Part: Sendable>(_ shared: SharedReader<IdentifiedArray<ID, Part>>)
    where Element == SharedReader<Part> {
        self.init(shared.wrappedValue.ids.compactMap { SharedReader(shared[id: $0]) })
    }
}
