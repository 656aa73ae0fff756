/// Runs a child machine on a part of the state, for those actions that are also the child's.
///
/// `@ComposableStateMachine` generates it from `@NestedState` and `@Forward`. A parent without the macro can use it
/// for a child whose actions are not all in one case. If they are, ``Scope`` is simpler.
public struct NestedStateMachine<ParentState, ParentAction: Sendable, Child: Reducer>: Reducer {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    private let state: any WritableKeyPath<ParentState, Child.State> & Sendable
    private let toChildAction: @Sendable (ParentAction) -> Child.Action?
    private let fromChildAction: @Sendable (Child.Action) -> ParentAction?
    private let child: Child
    private let location: CodeLocation

    /// Creates the reducer of a child.
    ///
    /// - Parameters:
    ///   - state: the path to the child's state in the parent's.
    ///   - toChildAction: returns the child's action for a parent's action; nil for actions of others.
    ///   - fromChildAction: returns the parent's action for an action that the child's effects send. For nil an issue
    ///     is reported, and the action is not sent.
    ///   - child: the child.
    public init(
        state: any WritableKeyPath<ParentState, Child.State> & Sendable,
        toChildAction: @escaping @Sendable (ParentAction) -> Child.Action?,
        fromChildAction: @escaping @Sendable (Child.Action) -> ParentAction?, child: () -> Child,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) {
        self.state = state
        self.toChildAction = toChildAction
        self.fromChildAction = fromChildAction
        self.child = child()
        location = CodeLocation(fileID, filePath, line, column)
    }

    /// Runs the child for its actions. Other actions have no effect.
    public func reduce(into state: inout ParentState, action: ParentAction) -> Effect<ParentAction> {
        guard let childAction = toChildAction(action) else { return .none }
        let effect = child.reduce(into: &state[keyPath: self.state], action: childAction)
        return effect.compactMap { [fromChildAction, location] action in
            if let own = fromChildAction(action) { return own }
            reportIssue(
                "An effect of the child \(Child.self) sent \(ValueText.summary(of: action)), which no case of the "
                    + "parent forwards. Add a case with '@Forward' to the parent's 'IOResult'.", at: location)
            return nil
        }
    }
}
