package import TrebuchetWire

/// A state that tracks its changes, so that the size of an update does not grow with the state.
///
/// ``KeyedCollection`` conforms to it, and a property with ``DeltaValue`` does. A struct of such members is a ``DeltaRecord``.
/// Write a custom conformance only for other types.
public protocol DeltaState: Codable, Sendable {
    /// Returns the changes since the last call, or nil when they are unknown or too many; then the whole value is sent.
    ///
    /// The changes transform the JSON of the value at the last call into its current JSON. The stream of the state calls this
    /// method. If other code calls it, the stream lacks those changes until it sends the whole value again.
    mutating func takeChanges() -> StateChanges?

    /// Applies changes that were taken from an equal value.
    ///
    /// Throws when they do not fit; then the value is unchanged.
    mutating func apply(_ changes: StateChanges) throws
}

extension DeltaState {
    /// Returns the value after applying a patch (RFC 6902) from a peer.
    package func applying(_ patch: UnsafeRawBufferPointer, with coder: ValueCoder) throws -> Self {
        var changed = self
        try StateChanges.$coder.withValue(coder) { try changed.apply(StateChanges(patch: patch)) }
        return changed
    }
}
