/// The name of a cancellable effect, and where in the tree of reducers it was made.
struct EffectID: Sendable {
    let name: AnyID
    let path: [AnyID]

    init(_ name: some Hashable & Sendable) {
        self.name = AnyID(name)
        path = DependencyValues.current.path
    }

    /// Whether a cancellation by `other` means this effect too: it comes from the same place or from further up.
    func isReached(by other: EffectID) -> Bool {
        name == other.name && path.starts(with: other.path)
    }
}

/// Any value that can be compared and handed to another isolation.
struct AnyID: Hashable, Sendable {
    private let value: any Hashable & Sendable

    init(_ value: some Hashable & Sendable) { self.value = value }

    static func == (left: Self, right: Self) -> Bool { AnyHashable(left.value) == AnyHashable(right.value) }

    func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}
