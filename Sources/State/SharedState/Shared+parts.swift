extension Shared {
    /// Creates a shared value from the value of an optional; nil when it has none.
    ///
    ///     if let user = Shared($currentUser) { edit(user) }
    ///
    /// If the optional becomes nil later, holders keep reading the last value, and their changes are dropped.
    public init?(_ base: Shared<Value?>) {
        let reference = base.reference
        let current = reference.current
        guard let value = current.value else { return nil }
        self.init(reference: UnwrappedReference(reference, LastKnownValue(value, version: current.version)))
    }

    /// Returns the result of a closure as a read-only value. The closure is called at each read.
    public func read<Part: Sendable>(_ compute: @escaping @Sendable (Value) -> Part) -> SharedReader<Part> {
        SharedReader<Part>(reference: ComputedReader(reference, compute))
    }

}

extension SharedReader {
    /// Creates a shared value from the value of an optional; nil when it has none.
    ///
    /// If the optional becomes nil later, holders keep reading the last value.
    public init?(_ base: SharedReader<Value?>) {
        let reference = base.reference
        let current = reference.current
        guard let value = current.value else { return nil }
        self.init(reference: UnwrappedReader(reference, LastKnownValue(value, version: current.version)))
    }

    /// Creates a read-only shared value from the value of an optional; nil when it has none.
    public init?(_ base: Shared<Value?>) { self.init(SharedReader<Value?>(base)) }

    /// Returns the result of a closure as a read-only value. The closure is called at each read.
    public func read<Part: Sendable>(_ compute: @escaping @Sendable (Value) -> Part) -> SharedReader<Part> {
        SharedReader<Part>(reference: ComputedReader(reference, compute))
    }

}

extension RangeReplaceableCollection {
    /// Creates a collection of the current elements of a shared array, each as a separate shared value:
    /// `Array($todos)`.
    public init<ID: Sendable, Part: Sendable>(_ shared: Shared<IdentifiedArray<ID, Part>>)
    where Element == Shared<Part> {
        self.init(shared.wrappedValue.ids.compactMap { Shared(shared[id: $0]) })
    }

    /// Creates a collection of the current elements of a shared array, each as a separate read-only value.
    public init<ID: Sendable, Part: Sendable>(_ shared: SharedReader<IdentifiedArray<ID, Part>>)
    where Element == SharedReader<Part> {
        self.init(shared.wrappedValue.ids.compactMap { SharedReader(shared[id: $0]) })
    }
}
