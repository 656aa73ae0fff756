internal import Distributed
internal import TrebuchetWire

/// How a persisted state is set to what was kept of it.
struct StatePersistence<A: DistributedActor>: Sendable {
    /// What a state is set to.
    struct Loaded: Sendable {
        let apply: @Sendable (isolated A) -> Void
        /// Whether it is other than what is stored: it was migrated, or has members that it had not.
        let isNew: Bool
    }

    /// `state`
    let property: String
    /// The version that is written.
    let version: Int
    /// Decodes what was kept, and gives what sets the property to it.
    let decode: @Sendable (isolated A, StoredState, ValueCoder) throws -> Loaded

    /// - Parameter value: the property, which has its initial value until it is loaded.
    init<Value: Codable & Sendable>(
        property: String, version: _StateVersion, value: @escaping @Sendable (isolated A) -> Value,
        _ load: @escaping @Sendable (isolated A, Value) -> Void
    ) {
        self.property = property
        self.version = version.number
        decode = { actor, stored, coder in
            let read = try StateReader(version: version, coder: coder).read(stored, initial: value(actor))
            let value = read.value
            return Loaded(apply: { load($0, value) }, isNew: read.isNew)
        }
    }
}
