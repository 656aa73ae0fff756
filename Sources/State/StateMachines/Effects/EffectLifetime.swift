import Synchronization

/// The lifetime of an effect's work, and its group.
final class EffectLifetime: Sendable {
    /// The group of the action that caused the effect; actions sent by the effect belong to it, too.
    let group: EffectGroup
    private let location: CodeLocation
    private let hasEnded = Atomic(false)
    private let isCancelled = Atomic(false)

    init(_ group: EffectGroup, _ location: CodeLocation) {
        self.group = group
        self.location = location
    }

    /// True if further actions are dropped: the effect, or the part of it that sends, was cancelled.
    var isOver: Bool { isCancelled.load(ordering: .acquiring) || Task.isCancelled }

    func cancel() { isCancelled.store(true, ordering: .releasing) }
    func markEnded() { hasEnded.store(true, ordering: .relaxed) }

    func check(_ action: some Sendable) {
        guard hasEnded.load(ordering: .relaxed) else { return }
        reportIssue(
            "An effect sent an action after it had ended: \(ValueText.summary(of: action)). "
                + "Await in the effect all tasks that it starts.", at: location)
    }
}

/// An action of an effect in transit to an owner with user-defined code, which returns it by an ordinary `send`.
final class EffectDelivery: Sendable {
    @TaskLocal private static var current: EffectDelivery?

    private let lifetime: EffectLifetime
    private let isTaken = Atomic(false)

    private init(_ lifetime: EffectLifetime) { self.lifetime = lifetime }

    static func withCurrent(_ lifetime: EffectLifetime, _ work: () async -> Void) async {
        await $current.withValue(EffectDelivery(lifetime), operation: work)
    }

    /// Returns the effect whose action this `send` is; nil for a `send` from other code, including other code of the
    /// owner on the same path.
    static func takeEffect(by registry: any EffectRegistry) -> EffectLifetime? {
        guard let current, current.lifetime.group.owner == ObjectIdentifier(registry),
            !current.isTaken.exchange(true, ordering: .relaxed)
        else { return nil }
        return current.lifetime
    }
}
