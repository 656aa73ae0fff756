/// The one place where the value of a `@StreamedState` property lives. Written by the macro.
///
/// It belongs to its actor and is touched in the actor's isolation alone. Changes in place cost a version and, when
/// somebody observes, a note to the reactor; nothing is copied and nothing encoded until the turn ends.
public final class StateCell<Value: Codable & Sendable> {
    public var value: Value
    private var version: UInt64 = 1
    /// Nil until somebody observes.
    private var source: StateSource<Value>?

    public init(_ value: Value) { self.value = value }

    deinit { source?.end() }

    /// Called after every change.
    @inline(__always)
    public func didChange() {
        version &+= 1
        source?.cellDidChange(self, version: version)
    }

    /// The value with its version, for observers in this process.
    var snapshot: (value: Value, version: UInt64) { (value, version) }

    /// The source, made at the first use.
    func source(home: ReactorShard?) -> StateSource<Value> {
        if let source { return source }
        let made = StateSource<Value>(cell: self, version: version, home: home)
        source = made
        return made
    }
}
