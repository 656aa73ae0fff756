public import TrebuchetWire

/// Converts a state stored by an older version of a program to the current form: see `StreamedState(persisted:)`.
///
/// It changes the JSON in place. The number is the stored version, 1 for a state stored without one. An error fails the actor's
/// calls and leaves the stored state unchanged.
public typealias StateMigration = @Sendable (_ json: inout JSONValue, _ from: Int) throws -> Void

/// The schema version that a program writes for a persisted state, and the migration of older ones.
@_documentation(visibility: internal)
public struct _StateVersion: Sendable {
    /// The version, from 1.
    let number: Int
    let migrate: StateMigration?

    /// Creates a schema version with an optional migration.
    public init(_ number: Int = 1, migrate: StateMigration? = nil) {
        self.number = number
        self.migrate = migrate
    }
}
