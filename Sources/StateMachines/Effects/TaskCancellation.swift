/// Where what runs can be cancelled by an id.
protocol EffectRegistry: AnyObject, Sendable {
    /// - Parameter cancelInFlight: whether what was registered before with this id is cancelled.
    func register(_ id: EffectID, cancelInFlight: Bool) -> EffectRegistration
    func unregister(_ registration: EffectRegistration)
    /// Cancels what was registered before.
    func cancel(_ id: EffectID)
    /// Where the work runs; nil for the pool.
    var executor: EffectExecutor? { get }
}

/// Where tasks are registered that no effect has started.
private let processRegistry = EffectTasks<Never>()

/// Runs work that `Task.cancel(id:)` and `.cancel(id:)` end; within an effect, a part of it.
///
///     return .run { send in
///         try await withTaskCancellation(id: CancelID.upload) { try await upload() }
///         await send(.uploaded)
///     }
///
/// An id means the work of one store or host, as it does for effects, and the work ends with that; outside of effects, all work
/// that was begun there.
///
/// - Parameter cancelInFlight: whether what was begun with this id before ends when this begins.
public func withTaskCancellation<Success: Sendable, Failure: Error>(
    id: some Hashable & Sendable, cancelInFlight: Bool = false,
    isolation: isolated (any Actor)? = #isolation,
    operation: @escaping @Sendable () async throws(Failure) -> Success
) async throws(Failure) -> Success {
    let registry = EffectGroup.current?.registry ?? processRegistry
    let registration = registry.register(EffectID(id), cancelInFlight: cancelInFlight)
    let task = registration.run(on: registry.executor) { () -> Result<Success, Failure> in
        do throws(Failure) {
            return .success(try await operation())
        } catch {
            return .failure(error)
        }
    }
    let result = await withTaskCancellationHandler {
        await task.value
    } onCancel: {
        task.cancel()
    }
    registry.unregister(registration)
    return try result.get()
}

extension Task where Success == Never, Failure == Never {
    /// Ends, within an effect, all effects of its store or host that have this id, and all work of
    /// ``withTaskCancellation(id:cancelInFlight:isolation:operation:)``; outside of effects, the work that was begun there.
    public static func cancel(id: some Hashable & Sendable) {
        (EffectGroup.current?.registry ?? processRegistry).cancel(EffectID(id))
    }
}
