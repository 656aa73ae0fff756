/// A struct whose members know what changed in them: it names them, and is a ``DeltaState``.
///
///     struct Board: DeltaRecord {
///         @DeltaValue var title = ""
///         var todos = KeyedCollection<Todo>()
///
///         static let deltaMembers: [DeltaMember<Board>] = [
///             DeltaMember("title", \._title), DeltaMember("todos", \.todos),
///         ]
///     }
///
/// What is small and knows nothing of changes gets ``DeltaValue``. The names are those of the struct's JSON. Every member
/// should be among them: of a record that has others, the whole is sent and kept at each change, and a line on standard error says so.
public protocol DeltaRecord: DeltaState {
    /// Every member of the record's JSON.
    static var deltaMembers: [DeltaMember<Self>] { get }
}

extension DeltaRecord {
    /// Asks each member for what changed since the last time, in the order of ``deltaMembers``.
    public mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        for member in Self.deltaMembers { changes.append(member.take(&self), at: member.name) }
        return changes
    }

    /// Hands each change to its member. Throws ``StateChangesError`` for a member that is not among ``deltaMembers``; then
    /// nothing is changed.
    public mutating func apply(_ changes: StateChanges) throws {
        try changes.apply(to: &self) { record, name, changes in
            guard let member = Self.deltaMembers.first(where: { $0.name == name }) else { return false }
            try member.apply(&record, changes)
            return true
        }
    }
}

/// A member of a ``DeltaRecord``: its name in JSON, and how it is reached.
public struct DeltaMember<Record: DeltaRecord>: Sendable {
    let name: String
    let take: @Sendable (inout Record) -> StateChanges?
    let apply: @Sendable (inout Record, StateChanges) throws -> Void

    /// - Parameters:
    ///   - name: As in the record's `CodingKeys`.
    ///   - path: To the member; for one with ``DeltaValue`` to the wrapper, which has an underscore: `\._title`.
    public init<Part: DeltaState>(_ name: String, _ path: any WritableKeyPath<Record, Part> & Sendable) {
        self.name = name
        take = { $0[keyPath: path].takeChanges() }
        apply = { try $0[keyPath: path].apply($1) }
    }
}
