/// What tells the subscribers of a `@StreamedState` property of its changes. Written by the macro, one beside each.
///
/// It belongs to its actor and is touched in the actor's isolation alone. The value stays in the property itself: a
/// change in place costs a version and, when somebody observes, a note to the reactor; nothing is copied and nothing
/// encoded until the call ends.
///
/// It takes any type, so that one which cannot be streamed is complained of once: where the actor's dispatch table names it.
@_documentation(visibility: internal)
public final class StateCell<Value> {
    static var firstVersion: UInt64 { 1 }

    private var version = StateCell.firstVersion
    /// Nil until somebody observes.
    private var source: NotedSource?
    private var isNoting = true

    private let delivery: StreamDelivery

    public init(delivery: StreamDelivery = .latest) { self.delivery = delivery }

    deinit { source?.end() }

    /// Called after every change.
    @inline(__always)
    public func didChange() {
        guard isNoting else { return }
        version &+= 1
        source?.didChange(version: version)
    }

    /// What letting go of its actor would lose.
    var usage: StreamUsage {
        StreamUsage(hasChanged: version != Self.firstVersion, isObserved: source?.isObserved ?? false)
    }

    /// Runs a body whose changes of the property make no version.
    func withoutNoting(_ body: () -> Void) {
        isNoting = false
        body()
        isNoting = true
    }

}

extension StateCell where Value: Codable & Sendable {
    /// The source; nil until somebody observes.
    var existing: StateSource<Value>? {
        // Made below, and nowhere else.
        source.map { unsafeDowncast($0, to: StateSource<Value>.self) }
    }

    /// The source, made at the first use.
    func source(home: SystemShard?, access: @autoclosure () -> StateAccess<Value>) -> StateSource<Value> {
        if let existing { return existing }
        let made = StateSource(version: version, home: home, delivery: delivery, access: access())
        source = made
        return made
    }
}

/// What a cell tells of changes, whatever their type.
///
/// `@unchecked Sendable`: nothing of its own; what its subclass keeps is said there.
class NotedSource: @unchecked Sendable {
    /// Whether somebody observes it over the network, or did and may come back.
    var isObserved: Bool { false }

    func didChange(version: UInt64) {}
    func end() {}
}
