package import TrebuchetWire

/// A state that knows what changed in it, so that what is sent of a change does not grow with the state.
///
/// ``KeyedCollection`` is one, and so is a property with ``DeltaValue``. A state of several such parts hands on what they
/// say:
///
///     struct Board: DeltaState {
///         @DeltaValue var title = ""
///         var todos = KeyedCollection<Todo>()
///
///         mutating func takeChanges() -> StateChanges? {
///             var changes = StateChanges()
///             changes.append(_title.takeChanges(), at: "title")
///             changes.append(todos.takeChanges(), at: "todos")
///             return changes
///         }
///
///         mutating func apply(_ changes: StateChanges) throws {
///             try changes.apply(to: &self) { board, member, changes in
///                 switch member {
///                 case "title": try board._title.apply(changes)
///                 case "todos": try board.todos.apply(changes)
///                 default: return false
///                 }
///                 return true
///             }
///         }
///     }
///
/// The names are those of the state's JSON. Every member must be among the parts: a change of one that is not is never
/// sent.
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
