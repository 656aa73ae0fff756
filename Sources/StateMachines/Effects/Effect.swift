import Synchronization

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
    /// The work is cancelled when the effect is, or the store goes; what it sends after that is dropped. An effect that is
    /// cancelled before it has started never runs its work, not even to tell it so. Actions are sent while the work runs:
    /// one that comes after its end, from a task that it left behind, is reduced but reported as an issue.
    ///
    /// - Parameter handler: gets the error that the work throws. Without it an error is reported as an issue, except
    ///   `CancellationError`, which is ignored.
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
                EffectWork(priority: priority) { send in
                    let life = EffectLife(location)
                    defer { life.end() }
                    let send = send.belonging(to: life)
                    await DependencyValues.$current.withValue(dependencies) {
                        do {
                            try await operation(send)
                        } catch is CancellationError {
                            return
                        } catch {
                            if let handler { return await handler(error, send) }
                            reportIssue("An \"Effect.run\" threw an unhandled error: \(error)", at: location)
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
    let run: @Sendable (Send<Action>) async -> Void
}

/// Sends actions from an effect back to the store or host: `await send(.loaded(items))`.
///
/// It returns when the action has been reduced. Once the effect is cancelled it does nothing.
public struct Send<Action: Sendable>: Sendable {
    private let deliver: @Sendable (Action) async -> Void
    private let life: EffectLife?

    init(_ deliver: @escaping @Sendable (Action) async -> Void) { self.init(deliver, nil) }

    private init(_ deliver: @escaping @Sendable (Action) async -> Void, _ life: EffectLife?) {
        self.deliver = deliver
        self.life = life
    }

    /// The same, with a report of what is sent after the end of a life.
    func belonging(to life: EffectLife) -> Self { Self(deliver, life) }

    /// Sends an action; returns when it has been reduced, and at once, without sending, after the effect was cancelled.
    public func callAsFunction(_ action: Action) async {
        guard !Task.isCancelled else { return }
        life?.check(action)
        await deliver(action)
    }
}

/// Whether the work of an effect goes on.
final class EffectLife: Sendable {
    private let hasEnded = Atomic(false)
    private let location: CodeLocation

    init(_ location: CodeLocation) { self.location = location }

    func end() { hasEnded.store(true, ordering: .relaxed) }

    func check(_ action: some Sendable) {
        guard hasEnded.load(ordering: .relaxed) else { return }
        reportIssue(
            "An action was sent from an effect that has ended: \(ValueText.summary(of: action)). "
                + "Wait in the effect for the tasks that it starts.", at: location)
    }
}
