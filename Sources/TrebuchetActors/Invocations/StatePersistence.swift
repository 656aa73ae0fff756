internal import Deltas
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
    /// Decodes what was kept, on any thread, and gives what sets the property to it.
    typealias Decode = @Sendable (StoredForm, ValueCoder) throws -> Loaded

    /// Gives what decodes, with the initial value of the property.
    let decoder: @Sendable (isolated A) -> Decode

    /// - Parameter value: the property, which has its initial value until it is loaded.
    init<Value: Codable & Sendable>(
        property: String, version: _StateVersion, value: @escaping @Sendable (isolated A) -> Value,
        _ load: @escaping @Sendable (isolated A, Value) -> Void
    ) {
        self.property = property
        self.version = version.number
        decoder = { actor in
            let initial = value(actor)
            return { stored, coder in
                let read = try StateReader(version: version, coder: coder).read(stored.state(), initial: initial)
                let value = read.value
                return Loaded(apply: { load($0, value) }, isNew: read.isNew)
            }
        }
    }

    /// Of a state that knows its changes: they are made to the value, and not to its text.
    init<Value: DeltaState>(
        changesOf property: String, version: _StateVersion, value: @escaping @Sendable (isolated A) -> Value,
        _ load: @escaping @Sendable (isolated A, Value) -> Void
    ) {
        let read = Self(property: property, version: version, value: value, load)
        self.property = property
        self.version = version.number
        decoder = { actor in
            let decode = read.decoder(actor)
            return { stored, coder in
                // What does not go as it is has grown, or says what is wrong with it.
                guard let value = try? Self.changed(Value.self, stored, version, coder) else {
                    return try decode(stored, coder)
                }
                return Loaded(apply: { load($0, value) }, isNew: false)
            }
        }
    }

    private static func changed<Value: DeltaState>(
        _ type: Value.Type, _ stored: StoredForm, _ version: _StateVersion, _ coder: ValueCoder
    ) throws -> Value? {
        guard let log = stored.log else { return nil }
        let whole = StoredState(log.snapshot.bytes)
        guard whole.version == version.number else { return nil }
        var value = try whole.json.withUnsafeBytes { try coder.decode(type, from: $0) }
        for entry in log.entries {
            value = try entry.bytes.withUnsafeBytes { try value.applying($0, with: coder) }
        }
        return value
    }
}

/// How the persisted events of an actor are found.
struct EventPersistence<A: DistributedActor>: Sendable {
    /// `moves`
    let property: String
    /// How many are kept.
    let keeping: @Sendable (isolated A) -> Int
    /// What sends them, and whether nobody has asked for it before.
    let source: @Sendable (isolated A, SystemShard) -> (source: EventSource, isNew: Bool)
}
