internal import Deltas
internal import TrebuchetWire

/// How a source gets at the property that it tells of. Everything but `enter` is used in the actor's isolation alone.
struct StateAccess<Value> {
    /// The value; nil once the actor is gone, which may be while an update is under way.
    let read: () -> Value?
    /// Runs work in the actor's isolation, soon; never when the actor is gone.
    let enter: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// What changed since the last call, its values encoded by the coder; nil when that is not known. Of a state that
    /// knows its changes.
    var takeChanges: ((ValueCoder) -> StateChanges?)?
}
