/// The name of a value in a `StateStore`: a namespace, which one kind of values has to itself, and a name within it.
///
/// Two keys are the same when their bytes in UTF-8 are; Swift's equality of strings is wider. The namespace `states` belongs to
/// `@StreamedState(persisted: true)`, and `events` to `@StreamedEvents(persisted: true)`.
public struct StateKey: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// What one kind of values has to itself.
    public let namespace: String
    /// The name within the namespace.
    public let name: String
    /// The exposed name of the actor that it belongs to; nil for what is no actor's. What has the same is written together, so a store
    /// that spreads what it keeps keeps it in one place. It does not make two keys different.
    public let partition: String?

    /// Any texts; what a store takes is the store's own matter.
    public init(_ namespace: String, _ name: String, partition: String? = nil) {
        self.namespace = namespace
        self.name = name
        self.partition = partition
    }

    /// `states/todos.state`
    public var description: String { "\(namespace)/\(name)" }

    public static func == (left: Self, right: Self) -> Bool {
        left.namespace.utf8.elementsEqual(right.namespace.utf8) && left.name.utf8.elementsEqual(right.name.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in namespace.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8.max)
        for byte in name.utf8 { hasher.combine(byte) }
    }

    /// The order of the bytes, the namespace's first.
    public static func < (left: Self, right: Self) -> Bool {
        if left.namespace.utf8.elementsEqual(right.namespace.utf8) {
            return left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
        }
        return left.namespace.utf8.lexicographicallyPrecedes(right.namespace.utf8)
    }
}
