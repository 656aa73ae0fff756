internal import Bytes
internal import Deltas
internal import TrebuchetWire

/// The access of a source to its property. Everything except `enter` is used only in the actor's isolation.
struct StateAccess<Value> {
    /// Returns the value; nil after the actor was released, which may happen during an update.
    let read: () -> Value?
    /// Runs work in the actor's isolation soon, or never if the actor was released.
    let enter: StreamProducer.Entry
    /// Returns the changes since the last call, encoded by the coder; nil if they are unknown. Set for a state that records its
    /// changes.
    var takeChanges: ((ValueCoder) -> StateChanges?)?
}

/// Encodes a copied value as JSON. Called on any thread.
typealias StateCopy = @Sendable (ValueCoder) throws -> [UInt8]

/// A streamed property with its type erased. In the actor's isolation.
protocol StateProperty {
    var type: Any.Type { get }
    /// Whether the actor still exists.
    var isThere: Bool { get }
    /// Encodes the value. Returns false after the actor was released.
    func encode(with coder: ValueCoder, into data: inout ByteBuffer) throws -> Bool
    /// Returns a copy of the value that can be encoded elsewhere; nil after the actor was released.
    func copy() -> StateCopy?
    func readers(version: UInt64, buffer: Int?) -> any LocalStateReaders
}

/// A property that is read through a closure; small enough for inline storage in its source.
struct PropertyReader<Value: Codable & Sendable>: StateProperty {
    let read: () -> Value?

    var type: Any.Type { Value.self }
    var isThere: Bool { read() != nil }

    func encode(with coder: ValueCoder, into data: inout ByteBuffer) throws -> Bool {
        guard let value = read() else { return false }
        try coder.encode(value, into: &data)
        return true
    }

    func copy() -> StateCopy? {
        guard let value = read() else { return nil }
        return { coder in
            var data = ByteBuffer()
            try coder.encode(value, into: &data)
            return Array(data.bytes)
        }
    }

    func readers(version: UInt64, buffer: Int?) -> any LocalStateReaders {
        LocalStates(version: version, buffer: buffer, read: read)
    }
}

/// The persister of a state or of events. In the actor's isolation.
protocol StatePersister: AnyObject {
    /// Reports a new version of the state, or a new event.
    func didChange()
    /// Reports an event that cannot be persisted and was not sent, so that the call that sent it fails.
    func didRefuse(_ error: TrebuchetError)
    /// Whether all changes are persisted.
    var isPersisted: Bool { get }
    /// Whether another node may continue the state. Everything that subscribers have seen must then be persisted.
    var hasSuccessors: Bool { get }
    /// Runs `update`, which publishes the versions up to now, after they are persisted.
    ///
    /// - Parameter isWanted: whether the update still has subscribers, which may change until then. Nil for an update of
    ///   captured changes, which is captured again if the write fails.
    func publishAfterWrite(while isWanted: (() -> Bool)?, _ update: @escaping () -> Void)
}
