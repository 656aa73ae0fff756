/// Makes what an older version of a program has stored of a state into what this one reads: see `StreamedState(persisted:)`.
///
/// It changes the JSON in place. The number is the version that is stored, 1 for what was stored without one. What it throws fails
/// the actor's calls, and what is stored stays as it is.
public typealias StateMigration = @Sendable (_ json: inout StateJSON, _ from: Int) throws -> Void

/// Which form of a persisted state a program writes, and what becomes of older ones.
@_documentation(visibility: internal)
public struct _StateVersion: Sendable {
    /// From 1.
    let number: Int
    let migrate: StateMigration?

    public init(_ number: Int = 1, migrate: StateMigration? = nil) {
        self.number = number
        self.migrate = migrate
    }
}
