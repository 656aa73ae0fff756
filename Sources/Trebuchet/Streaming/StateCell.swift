/// What tells the subscribers of a `@StreamedState` property of its changes. Written by the macro, one beside each.
///
/// It belongs to its actor and is touched in the actor's isolation alone. The value stays in the property itself: a
/// change in place costs a version and, when somebody observes, a note to the reactor; nothing is copied and nothing
/// encoded until the call ends.
public final class StateCell<Value: Codable & Sendable> {
    static var firstVersion: UInt64 { 1 }

    private var version = StateCell.firstVersion
    /// Nil until somebody observes.
    private var source: StateSource<Value>?

    public init() {}

    deinit { source?.end() }

    /// Called after every change.
    @inline(__always)
    public func didChange() {
        version &+= 1
        source?.didChange(version: version)
    }

    /// The source, made at the first use.
    func source(home: ReactorShard?, reading value: @escaping () -> Value?) -> StateSource<Value> {
        if let source { return source }
        let made = StateSource(version: version, home: home, reading: value)
        source = made
        return made
    }
}
