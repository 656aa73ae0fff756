/// Runs a child on the part of the state, and for the actions, that are the child's.
public struct Scope<ParentState, ParentAction: Sendable, Child: Reducer>: Reducer {
    /// None: ``reduce(into:action:)`` does it all.
    public typealias Body = Never
    private let state: any WritableKeyPath<ParentState, Child.State> & Sendable
    private let action: AnyCasePath<ParentAction, Child.Action>
    private let child: Child

    // The key paths tell the types that the builder needs, so these have names of their own.
    /// - Parameters:
    ///   - state: where the child's state is in the parent's.
    ///   - action: the case of the parent's action that carries the child's. Other actions do not reach the child.
    ///   - child: the child's reducers, from the top down.
    public init<ChildState, ChildAction>(
        state: any WritableKeyPath<ParentState, ChildState> & Sendable,
        action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child
    ) where Child.State == ChildState, Child.Action == ChildAction {
        self.state = state
        self.action = AnyCasePath(action)
        self.child = child()
    }

    /// Runs the child for its own actions; changes nothing for others.
    public func reduce(into state: inout ParentState, action: ParentAction) -> Effect<ParentAction> {
        guard let childAction = self.action.extract(action) else { return .none }
        return child.reduce(into: &state[keyPath: self.state], action: childAction).map(self.action.embed)
    }
}
