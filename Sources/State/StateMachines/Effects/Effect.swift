/// A description of work outside a reducer, as a value. It runs only after a reducer has returned it to a store or
/// host.
///
/// An effect is registered for cancellation when the reducer returns it, before it starts. So `.cancel(id:)` also
/// affects effects that wait in a `concatenate`. All effects end when their store or host is released.
public struct Effect<Action: Sendable>: Sendable {
    /// The kind of an effect.
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

    /// An effect that does nothing.
    public static var none: Self { Self(.none) }

    /// Returns an effect that sends an action at once, after those that already wait.
    public static func send(_ action: Action) -> Self { Self(.send(action)) }

    /// Returns an effect that runs asynchronous work, which may send any number of actions.
    ///
    /// The work is cancelled when the effect is cancelled, or the store is released; actions sent after that are
    /// dropped, whichever task sends them. An effect that is cancelled before its start never runs its work, not even
    /// for cleanup. Actions must be sent before the work ends. A later one, from a task that it left behind, is
    /// reduced but reported as an issue.
    ///
    /// - Parameter handler: receives the error that the work throws, except a `CancellationError` after the
    ///   cancellation of the effect. Without it an error is reported as an issue, except each `CancellationError`,
    ///   which is ignored.
    public static func run(
        priority: TaskPriority? = nil,
        operation: @escaping @Sendable (_ send: Send<Action>) async throws -> Void,
        catch handler: (@Sendable (_ error: any Error, _ send: Send<Action>) async -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) -> Self {
        // Captured here: an effect runs with the dependencies of the reducer that created it.
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
                            // A `CancellationError` from another source is an error like others.
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
    /// The location of the effect's creation.
    let location: CodeLocation
    let run: @Sendable (Send<Action>) async -> Void
}

/// Delivers an action of an effect to its owner, and returns after the action has been reduced. Its result is called
/// when the effect continues, on the actor of the effect.
typealias Deliver<Action> = @Sendable (Action, EffectLifetime) async -> (@Sendable () -> Void)?

/// Sends actions from an effect to the store or host: `await send(.loaded(items))`.
///
/// A call returns when the action has been reduced. After the cancellation of the effect it does nothing.
public struct Send<Action: Sendable>: Sendable {
    private let deliver: Deliver<Action>
    private let lifetime: EffectLifetime

    init(_ lifetime: EffectLifetime, _ deliver: @escaping Deliver<Action>) {
        self.deliver = deliver
        self.lifetime = lifetime
    }

    /// Returns a sender of other actions. Nil results are not sent.
    func from<Other: Sendable>(_ transform: @escaping @Sendable (Other) -> Action?) -> Send<Other> {
        Send<Other>(lifetime) { [deliver] action, lifetime in
            guard let action = transform(action) else { return nil }
            return await deliver(action, lifetime)
        }
    }

    /// Sends an action. Returns when it has been reduced; after the cancellation of the effect at once, without
    /// sending.
    nonisolated(nonsending) public func callAsFunction(_ action: Action) async {
        guard !lifetime.isOver else { return }
        lifetime.check(action)
        let resume = await deliver(action, lifetime)
        resume?()
    }
}
