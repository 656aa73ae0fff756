/// Any id as a key of a table that is shared between threads; ids of different types are different.
///
/// Unchecked: made of a Sendable value alone, and never changed.
struct SendableKey: Hashable, @unchecked Sendable {
    private let base: AnyHashable
    private let type: ObjectIdentifier

    init<ID: Hashable & Sendable>(_ id: ID) { self.init(id, of: ID.self) }

    /// An id that is unique among those of a type.
    init(_ id: some Hashable & Sendable, of type: any Any.Type) {
        base = AnyHashable(id)
        self.type = ObjectIdentifier(type)
    }
}
