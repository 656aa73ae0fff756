import Synchronization

/// What becomes of the work of an effect, and whose it is.
final class EffectLife: Sendable {
    /// That of the action which the effect comes of; those that it sends belong to it, too.
    let group: EffectGroup
    private let location: CodeLocation
    private let hasEnded = Atomic(false)
    private let isCancelled = Atomic(false)

    init(_ group: EffectGroup, _ location: CodeLocation) {
        self.group = group
        self.location = location
    }

    /// Whether what is sent now is dropped: the effect was cancelled, or the part of it that sends.
    var isOver: Bool { isCancelled.load(ordering: .acquiring) || Task.isCancelled }

    func cancel() { isCancelled.store(true, ordering: .releasing) }
    func end() { hasEnded.store(true, ordering: .relaxed) }

    func check(_ action: some Sendable) {
        guard hasEnded.load(ordering: .relaxed) else { return }
        reportIssue(
            "An action was sent from an effect that has ended: \(ValueText.summary(of: action)). "
                + "Wait in the effect for the tasks that it starts.", at: location)
    }
}

/// An action of an effect on its way to an owner whose code we do not know: it comes back by a `send` like any other.
final class EffectDelivery: Sendable {
    @TaskLocal private static var current: EffectDelivery?

    private let life: EffectLife
    private let isTaken = Atomic(false)

    private init(_ life: EffectLife) { self.life = life }

    static func bring(_ life: EffectLife, _ work: () async -> Void) async {
        await $current.withValue(EffectDelivery(life), operation: work)
    }

    /// The effect whose action this `send` is; nil for one that anybody else sends, the owner on the same way included.
    static func take(by registry: any EffectRegistry) -> EffectLife? {
        guard let current, current.life.group.owner == ObjectIdentifier(registry),
            !current.isTaken.exchange(true, ordering: .relaxed)
        else { return nil }
        return current.life
    }
}
