/// Runs a child on the part of the state, and for the actions, that are the child's.
public struct Scope<ParentState, ParentAction: Sendable, Child: Reducer>: Reducer {
    public typealias Body = Never
    private let state: any WritableKeyPath<ParentState, Child.State> & Sendable
    private let action: AnyCasePath<ParentAction, Child.Action>
    private let child: Child

    // The key paths tell the types that the builder needs, so these have names of their own.
    public init<ChildState, ChildAction>(
        state: any WritableKeyPath<ParentState, ChildState> & Sendable,
        action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child
    ) where Child.State == ChildState, Child.Action == ChildAction {
        self.state = state
        self.action = AnyCasePath(action)
        self.child = child()
    }

    public func reduce(into state: inout ParentState, action: ParentAction) -> Effect<ParentAction> {
        guard let childAction = self.action.extract(action) else { return .none }
        return child.reduce(into: &state[keyPath: self.state], action: childAction).map(self.action.embed)
    }
}
