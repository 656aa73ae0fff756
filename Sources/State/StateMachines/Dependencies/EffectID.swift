/// The name of a cancellable effect, and its path in the tree of reducers.
struct EffectID: Sendable {
    let name: AnyID
    let path: [AnyID]

    init(_ name: some Hashable & Sendable) {
        self.name = AnyID(name)
        path = DependencyValues.current.path
    }

    /// Returns true if a cancellation by `other` includes this effect: it comes from the same place or from further
    /// up.
    func isReached(by other: EffectID) -> Bool {
        name == other.name && path.starts(with: other.path)
    }
}

/// A type-erased value that is hashable and sendable.
struct AnyID: Hashable, Sendable {
    private let value: any Hashable & Sendable

    init(_ value: some Hashable & Sendable) { self.value = value }

    static func == (left: Self, right: Self) -> Bool { AnyHashable(left.value) == AnyHashable(right.value) }

    func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}
