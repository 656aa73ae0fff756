/// What is to be done outside of a reducer, as a value: nothing happens until a store or host gets it back.
///
/// An effect is registered for cancellation when the reducer returns it, before it starts, so a `.cancel(id:)` also
/// reaches what waits for its turn in a `concatenate`. All effects end when their store or host goes.
public struct Effect<Action: Sendable>: Sendable {
    indirect enum Operation: Sendable {
        case none
        case send(Action)
        case run(EffectWork<Action>)
        case merge([Effect])
        case concatenate([Effect])
        case cancellable(Effect, EffectID, cancelInFlight: Bool)
        case cancel(EffectID)
        case gated(Effect, EffectGate)
    }

    let operation: Operation

    init(_ operation: Operation) { self.operation = operation }

    /// Does nothing.
    public static var none: Self { Self(.none) }

    /// Sends an action at once, after those that are already waiting.
    public static func send(_ action: Action) -> Self { Self(.send(action)) }

    /// Runs asynchronous work that may send any number of actions.
    ///
    /// The work is cancelled when the effect is, or the store goes; what it sends after that is dropped, whichever task sends it.
    /// An effect that is cancelled before it has started never runs its work, not even to tell it so. Actions are sent while the
    /// work runs: one that comes after its end, from a task that it left behind, is reduced but reported as an issue.
    ///
    /// - Parameter handler: gets the error that the work throws, except a `CancellationError` after the effect was cancelled.
    ///   Without it an error is reported as an issue, except each `CancellationError`, which is ignored.
    public static func run(
        priority: TaskPriority? = nil,
        operation: @escaping @Sendable (_ send: Send<Action>) async throws -> Void,
        catch handler: (@Sendable (_ error: any Error, _ send: Send<Action>) async -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) -> Self {
        // Taken here: an effect runs with the dependencies of the reducer that made it.
        let dependencies = DependencyValues.current
        let location = CodeLocation(fileID, filePath, line, column)
        return Self(
            .run(
                EffectWork(priority: priority, location: location) { send in
                    await DependencyValues.$current.withValue(dependencies) {
                        do {
                            try await operation(send)
                        } catch {
                            let isCancellation = error is CancellationError
                            // That of something else is an error like others.
                            if isCancellation, Task.isCancelled { return }
                            if let handler { return await handler(error, send) }
                            if isCancellation { return }
                            reportIssue(
                                "An \"Effect.run\" threw an unhandled error: \(error). Handle it in 'catch:'.",
                                at: location)
                        }
                    }
                }))
    }

    var isNone: Bool {
        if case .none = operation { return true }
        return false
    }
}

/// The asynchronous part of an effect.
struct EffectWork<Action: Sendable>: Sendable {
    let priority: TaskPriority?
    /// Where the effect was made.
    let location: CodeLocation
    let run: @Sendable (Send<Action>) async -> Void
}

/// Takes an action of an effect to its owner, and returns when it has been reduced. What it returns is called when the effect
/// goes on, on the actor that the effect is on.
typealias Deliver<Action> = @Sendable (Action, EffectLife) async -> (@Sendable () -> Void)?

/// Sends actions from an effect back to the store or host: `await send(.loaded(items))`.
///
/// It returns when the action has been reduced. Once the effect is cancelled it does nothing.
public struct Send<Action: Sendable>: Sendable {
    private let deliver: Deliver<Action>
    private let life: EffectLife

    init(_ life: EffectLife, _ deliver: @escaping Deliver<Action>) {
        self.deliver = deliver
        self.life = life
    }

    /// The same for other actions; those that become nil are not sent.
    func from<Other: Sendable>(_ transform: @escaping @Sendable (Other) -> Action?) -> Send<Other> {
        Send<Other>(life) { [deliver] action, life in
            guard let action = transform(action) else { return nil }
            return await deliver(action, life)
        }
    }

    /// Sends an action; returns when it has been reduced, and at once, without sending, after the effect was cancelled.
    nonisolated(nonsending) public func callAsFunction(_ action: Action) async {
        guard !life.isOver else { return }
        life.check(action)
        let goesOn = await deliver(action, life)
        goesOn?()
    }
}
