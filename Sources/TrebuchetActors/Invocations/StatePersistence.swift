internal import Deltas
internal import Distributed
internal import TrebuchetWire

/// How a persisted state is set to what was kept of it.
struct StatePersistence<A: DistributedActor>: Sendable {
    /// What was kept, read.
    struct Loaded: Sendable {
        /// Sets the property to it.
        let set: @Sendable (isolated A) -> Void
        /// Whether the value is the one that is stored, so that changes of it are changes of that.
        let isAsStored: Bool
    }

    /// `state`
    let property: String
    /// Reads what was kept.
    let load: @Sendable (StoredForm, ValueCoder) throws -> Loaded

    init<Value: Codable & Sendable>(property: String, _ set: @escaping @Sendable (isolated A, Value) -> Void) {
        self.property = property
        load = { stored, coder in
            let value = try stored.text().withUnsafeBytes { try coder.decode(Value.self, from: $0) }
            return Loaded(set: { actor in set(actor, value) }, isAsStored: true)
        }
    }

    /// Of a state that knows its changes: they are made to the value, and not to its text.
    init<Value: DeltaState>(changesOf property: String, _ set: @escaping @Sendable (isolated A, Value) -> Void) {
        self.property = property
        load = { stored, coder in
            let (whole, entries) =
                switch stored {
                case .value(let text): (text, [LogEntry]())
                case .log(let log): (log.snapshot.bytes, log.entries)
                }
            var value = try whole.withUnsafeBytes { try coder.decode(Value.self, from: $0) }
            for entry in entries {
                value = try entry.bytes.withUnsafeBytes { try value.applying($0, with: coder) }
            }
            let loaded = value
            return Loaded(set: { actor in set(actor, loaded) }, isAsStored: true)
        }
    }
}
