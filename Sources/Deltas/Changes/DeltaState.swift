package import TrebuchetWire

/// A state that knows what changed in it, so that what is sent of a change does not grow with the state.
///
/// ``KeyedCollection`` is one, and so is a property with ``DeltaValue``. A struct of such members is a ``DeltaRecord``. Write
/// a conformance of your own only for what is none of these.
public protocol DeltaState: Codable, Sendable {
    /// The changes since the last call; nil when they are not known, or too many: then the whole value is sent.
    ///
    /// They turn the JSON of the value then into that of the value now. Who streams the state calls this; when someone
    /// else does, those changes are missing from what is sent, until the whole value is sent again.
    mutating func takeChanges() -> StateChanges?

    /// Makes changes that were taken from an equal value.
    ///
    /// Throws when they do not fit; the value is as it was then.
    mutating func apply(_ changes: StateChanges) throws
}

extension DeltaState {
    /// The value after the changes of a patch (RFC 6902), as a peer sent it.
    package func applying(_ patch: UnsafeRawBufferPointer, with coder: ValueCoder) throws -> Self {
        var changed = self
        try StateChanges.$coder.withValue(coder) { try changed.apply(StateChanges(patch: patch)) }
        return changed
    }
}
