/// A struct that lists its members, each of which tracks its own changes. It is a ``DeltaState``.
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
/// Small members that do not track changes get ``DeltaValue``. The names are those of the struct's JSON. The list should name
/// every member. If it does not, the whole record is sent and persisted at each change, and standard error shows a warning.
public protocol DeltaRecord: DeltaState {
    /// The members of the record, one for each member of its JSON.
    static var deltaMembers: [DeltaMember<Self>] { get }
}

extension DeltaRecord {
    /// Takes the changes of each member since the last call, in the order of ``deltaMembers``.
    public mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        for member in Self.deltaMembers { changes.append(member.take(&self), at: member.name) }
        return changes
    }

    /// Applies each change to its member. Throws ``StateChangesError`` for a member that is not in ``deltaMembers``; then the
    /// value is unchanged.
    public mutating func apply(_ changes: StateChanges) throws {
        try changes.apply(to: &self) { record, name, changes in
            guard let member = Self.deltaMembers.first(where: { $0.name == name }) else { return false }
            try member.apply(&record, changes)
            return true
        }
    }
}

/// A member of a ``DeltaRecord``: its name in JSON and the path to it.
public struct DeltaMember<Record: DeltaRecord>: Sendable {
    let name: String
    let take: @Sendable (inout Record) -> StateChanges?
    let apply: @Sendable (inout Record, StateChanges) throws -> Void

    /// Creates a member.
    ///
    /// - Parameters:
    ///   - name: The name in the record's `CodingKeys`.
    ///   - path: The path to the member; for a ``DeltaValue`` the path to the wrapper, which has an underscore: `\._title`.
    public init<Part: DeltaState>(_ name: String, _ path: any WritableKeyPath<Record, Part> & Sendable) {
        self.name = name
        take = { $0[keyPath: path].takeChanges() }
        apply = { try $0[keyPath: path].apply($1) }
    }
}
