internal import Deltas
internal import Distributed
internal import TrebuchetWire

/// The persistence of one state property: how it is set to its stored value.
struct StatePersistence<A: DistributedActor>: Sendable {
    /// A decoded value of a state.
    struct Loaded: Sendable {
        let apply: @Sendable (isolated A) -> Void
        /// Set if the value differs from the stored one: it was migrated, or has members that the stored value lacks.
        let isNew: Bool
    }

    /// The property's name, such as `state`.
    let property: String
    /// The schema version that is written.
    let version: Int
    /// Decodes a stored value, on any thread, and returns a closure that sets the property to it.
    typealias Decode = @Sendable (StoredStateFormat, ValueCoder) throws -> Loaded

    /// Returns the decoding closure, which captures the initial value of the property.
    let decoder: @Sendable (isolated A) -> Decode

    /// Creates the persistence of a state.
    ///
    /// - Parameter value: reads the property, which has its initial value until the state is loaded.
    init<Value: Codable & Sendable>(
        property: String, version: _StateVersion, value: @escaping @Sendable (isolated A) -> Value,
        _ load: @escaping @Sendable (isolated A, Value) -> Void
    ) {
        self.property = property
        self.version = version.number
        decoder = { actor in
            let initial = value(actor)
            return { stored, coder in
                let read = try StoredStateDecoder(version: version, coder: coder).read(stored.state(), initial: initial)
                let value = read.value
                return Loaded(apply: { load($0, value) }, isNew: read.isNew)
            }
        }
    }

    /// Creates the persistence of a state that records its changes. Stored changes are applied to the value and not to its
    /// text.
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
                // A stored state that does not decode directly has additional members, or the general path reports its error.
                guard let value = try? Self.changed(Value.self, stored, version, coder) else {
                    return try decode(stored, coder)
                }
                return Loaded(apply: { load($0, value) }, isNew: false)
            }
        }
    }

    private static func changed<Value: DeltaState>(
        _ type: Value.Type, _ stored: StoredStateFormat, _ version: _StateVersion, _ coder: ValueCoder
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

/// The persistence of an actor's events.
struct EventPersistence<A: DistributedActor>: Sendable {
    /// The property's name, such as `moves`.
    let property: String
    /// Returns the number of events that are retained.
    let keeping: @Sendable (isolated A) -> Int
    /// Returns the source of the events, and whether this call created it.
    let source: @Sendable (isolated A, SystemShard) -> (source: EventSource, isNew: Bool)
}
