/// An effect that a reducer has returned: each cancellable part is registered, nothing has started.
indirect enum PlannedEffect<Action: Sendable>: Sendable {
    case send(Action)
    case run(EffectWork<Action>)
    case merge([PlannedEffect])
    case concatenate([PlannedEffect])
    case cancellable(PlannedEffect, EffectRegistration, cancelInFlight: Bool)
    case cancel(EffectID, EffectPosition)
    /// The mark is set when the effect is cancelled, whether it has begun or not.
    case gated(PlannedEffect, EffectGate, CancellationMark)
    /// One whose gate has said to wait.
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

/// Where a part stands among all that was returned together.
struct EffectPosition: Sendable {
    /// Counts what reducers returned.
    let plan: UInt64
    /// Counts the parts of one return, in order, from 1.
    let order: Int

    /// Whether something stands here that no reducer has returned: it has a place of its own.
    var isOfPart: Bool { order == 0 }

    /// Whether a cancellation that stands here means an effect that stands at `other`.
    ///
    /// It means what was returned before, also when it has waited for its turn; within one return what stands before it, so
    /// that `concatenate(cancel(id), work.cancellable(id))` replaces the old work and not the new.
    func reaches(_ other: EffectPosition) -> Bool {
        plan == other.plan ? order > other.order : plan > other.plan
    }
}

/// Decides, when an effect's turn comes, whether and when it begins.
struct EffectGate: Sendable {
    enum Decision: Sendable {
        case go
        case drop
        /// Returns whether to go.
        case wait(@Sendable () async -> Bool)
    }

    /// Called once for each effect; of those that need not wait for others, in the order in which reducers returned them.
    let decide: @Sendable (CancellationMark) -> Decision
}
