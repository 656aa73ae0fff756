/// Sends actions from an effect back to the store or host: `await send(.loaded(items))`.
///
/// It returns when the action has been reduced. Once the effect is cancelled it does nothing.
public struct Send<Action: Sendable>: Sendable {
    private let deliver: @Sendable (Action) async -> Void

    init(_ deliver: @escaping @Sendable (Action) async -> Void) { self.deliver = deliver }

    public func callAsFunction(_ action: Action) async {
        guard !Task.isCancelled else { return }
        await deliver(action)
    }
}
