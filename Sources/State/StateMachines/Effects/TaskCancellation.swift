/// A registry of running work that can be cancelled by an id.
protocol EffectRegistry: AnyObject, Sendable {
    /// Registers work.
    ///
    /// - Parameter cancelInFlight: whether earlier work with this id is cancelled.
    func register(_ id: EffectID, cancelInFlight: Bool) -> EffectRegistration
    func unregister(_ registration: EffectRegistration)
    /// Cancels work that was registered before.
    func cancel(_ id: EffectID)
    /// The executor of the work; nil for the global pool.
    var executor: EffectExecutor? { get }
}

/// The registry of work outside effects.
private let processRegistry = EffectTasks<Never>()

/// Runs work that `Task.cancel(id:)` and `.cancel(id:)` end; within an effect, it is a part of the effect.
///
///     return .run { send in
///         try await withTaskCancellation(id: CancelID.upload) { try await upload() }
///         await send(.uploaded)
///     }
///
/// An id refers to the work of one store or host, as it does for effects, and the work ends with that store or host.
/// Outside effects, it refers to all work started there.
///
/// - Parameter cancelInFlight: whether earlier work with this id ends when this starts.
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
    /// Ends, within an effect, all effects of its store or host with this id, and all work of
    /// ``withTaskCancellation(id:cancelInFlight:isolation:operation:)``. Outside effects, it ends the work started
    /// there.
    public static func cancel(id: some Hashable & Sendable) {
        (EffectGroup.current?.registry ?? processRegistry).cancel(EffectID(id))
    }
}
