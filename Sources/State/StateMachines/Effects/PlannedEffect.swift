/// An effect that a reducer has returned: its cancellable parts are registered, and none has started.
indirect enum PlannedEffect<Action: Sendable>: Sendable {
    case send(Action)
    case run(EffectWork<Action>)
    case merge([PlannedEffect])
    case concatenate([PlannedEffect])
    case cancellable(PlannedEffect, EffectRegistration, cancelInFlight: Bool)
    case cancel(EffectID, EffectPosition)
    /// The mark is set when the effect is cancelled, whether it has started or not.
    case gated(PlannedEffect, EffectGate, CancellationFlag)
    /// An effect whose gate requires a wait.
    case waiting(PlannedEffect, @Sendable () async -> Bool)

    var priority: TaskPriority? {
        switch self {
        case .run(let work): work.priority
        case .cancellable(let effect, _, _), .gated(let effect, _, _), .waiting(let effect, _): effect.priority
        case .concatenate(let effects): effects.first?.priority
        case .send, .merge, .cancel: nil
        }
    }
}

/// The position of a part among the effects that were returned together.
struct EffectPosition: Sendable {
    /// The number of the reducer return.
    let plan: UInt64
    /// The number of the part within the return, from 1.
    let order: Int

    /// True for work that was not returned by a reducer, which has a separate position.
    var isOfPart: Bool { order == 0 }

    /// Returns true if a cancellation at this position includes an effect at `other`.
    ///
    /// It includes effects that were returned earlier, even if they still wait. Within one return it includes the
    /// effects before it, so that `concatenate(cancel(id), work.cancellable(id))` replaces the old work and not the
    /// new.
    func reaches(_ other: EffectPosition) -> Bool {
        plan == other.plan ? order > other.order : plan > other.plan
    }
}

/// Decides, in an effect's turn, whether and when it starts.
struct EffectGate: Sendable {
    /// The decision about an effect.
    enum Decision: Sendable {
        case go
        case drop
        /// Returns true to start the effect.
        case wait(@Sendable () async -> Bool)
    }

    /// Called once for each effect; for effects that need not wait for others, in the order of their return.
    let decide: @Sendable (CancellationFlag) -> Decision
}
