/// The key of a value in a `StateStore`: a namespace for one kind of values, and a name within it.
///
/// Keys are compared by their UTF-8 bytes; Swift's string equality is wider. The namespace `states` belongs to
/// `@StreamedState(persisted: true)`, `events` to `@StreamedEvents(persisted: true)`, and `alarms` and `alarmTimes` to alarms.
public struct StateKey: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The namespace of one kind of values.
    public let namespace: String
    /// The name within the namespace.
    public let name: String
    /// The exposed name of the actor that the value belongs to; nil for other values. Values of one partition are written
    /// together, so a distributed store keeps them in one place. It is not part of the key's identity.
    public let partition: String?

    /// Creates a key from any texts; a store may restrict them.
    public init(_ namespace: String, _ name: String, partition: String? = nil) {
        self.namespace = namespace
        self.name = name
        self.partition = partition
    }

    /// The key as text, such as `states/todos.state`.
    public var description: String { "\(namespace)/\(name)" }

    public static func == (left: Self, right: Self) -> Bool {
        left.namespace.utf8.elementsEqual(right.namespace.utf8) && left.name.utf8.elementsEqual(right.name.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in namespace.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8.max)
        for byte in name.utf8 { hasher.combine(byte) }
    }

    /// Compares the bytes, those of the namespace first.
    public static func < (left: Self, right: Self) -> Bool {
        if left.namespace.utf8.elementsEqual(right.namespace.utf8) {
            return left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
        }
        return left.namespace.utf8.lexicographicallyPrecedes(right.namespace.utf8)
    }
}
