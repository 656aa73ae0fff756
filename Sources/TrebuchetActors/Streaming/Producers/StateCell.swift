/// What tells the subscribers of a `@StreamedState` property of its changes. Written by the macro, one beside each.
///
/// It belongs to its actor and is touched in the actor's isolation alone. The value stays in the property itself: a
/// change in place costs a version and, when somebody observes, a note to the reactor; nothing is copied and nothing
/// encoded until the call ends.
///
/// It takes any type, so that one which cannot be streamed is complained of once: where the actor's dispatch table names it.
@_documentation(visibility: internal)
public final class _StateCell<Value> {
    private var version = StateSource.firstVersion
    /// Nil until somebody observes.
    fileprivate(set) var source: StateSource?
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
        StreamUsage(hasChanged: version != StateSource.firstVersion, isObserved: source?.isObserved ?? false)
    }

    /// Goes on from a version that it had in an earlier process; false when somebody has looked at it in this one.
    func resume(version: UInt64) -> Bool {
        guard source == nil else { return false }
        self.version = version
        return true
    }

    /// Runs a body whose changes of the property make no version.
    func withoutNoting(_ body: () -> Void) {
        isNoting = false
        body()
        isNoting = true
    }
}

extension _StateCell where Value: Codable & Sendable {
    /// The source, made at the first use.
    func source(home: SystemShard?, access: @autoclosure () -> StateAccess<Value>) -> StateSource {
        if let source { return source }
        let made = StateSource(version: version, home: home, delivery: delivery, access: access())
        source = made
        return made
    }
}
