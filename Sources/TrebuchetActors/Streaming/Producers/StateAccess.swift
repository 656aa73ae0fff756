internal import Bytes
internal import Deltas
internal import TrebuchetWire

/// How a source gets at the property that it tells of. Everything but `enter` is used in the actor's isolation alone.
struct StateAccess<Value> {
    /// The value; nil once the actor is gone, which may be while an update is under way.
    let read: () -> Value?
    /// Runs work in the actor's isolation, soon; never when the actor is gone.
    let enter: StreamHub.Entry
    /// What changed since the last call, its values encoded by the coder; nil when that is not known. Of a state that
    /// knows its changes.
    var takeChanges: ((ValueCoder) -> StateChanges?)?
}

/// Writes a value as it was when it was copied, in JSON. From anywhere.
typealias StateCopy = @Sendable (ValueCoder) throws -> [UInt8]

/// A streamed property, whatever its type. In the actor's isolation.
protocol StateProperty {
    var type: Any.Type { get }
    /// Whether the actor is.
    var isThere: Bool { get }
    /// Writes the value; false when the actor is gone.
    func encode(with coder: ValueCoder, into data: inout ByteBuffer) throws -> Bool
    /// A copy of the value, to be encoded elsewhere; nil when the actor is gone.
    func copy() -> StateCopy?
    func readers(version: UInt64, buffer: Int?) -> any LocalReaders
}

/// Small enough to lie in its source.
struct ReadProperty<Value: Codable & Sendable>: StateProperty {
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

    func readers(version: UInt64, buffer: Int?) -> any LocalReaders {
        LocalStates(version: version, buffer: buffer, read: read)
    }
}

/// Who keeps a state, or events, beyond their process. In the actor's isolation.
protocol StateKeeper: AnyObject {
    /// The state has a new version, or an event was sent.
    func didChange()
    /// An event cannot be kept, and was not sent: who called for it is told.
    func didRefuse(_ error: TrebuchetError)
    /// Whether everything that has changed is kept.
    var isAtRest: Bool { get }
    /// Whether others may go on with the state: then all that those who observe have seen has to be kept.
    var hasSuccessors: Bool { get }
    /// Runs `update`, which shows the versions up to now, when they are kept.
    ///
    /// - Parameter isWanted: whether anybody would still see it; streams may come and go meanwhile. Nil for what was captured, and is
    ///   again should it not be kept.
    func show(while isWanted: (() -> Bool)?, _ update: @escaping () -> Void)
}
