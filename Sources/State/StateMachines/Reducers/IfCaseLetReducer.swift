extension Reducer where State: CasePathable {
    /// Runs a child whose state is a case of the parent's, before the reducer itself.
    ///
    ///     Reduce { … }
    ///         .ifCaseLet(\.loggedIn, action: \.loggedIn) { LoggedIn() }
    ///
    /// When the state becomes another case, or that of another child (a different `id`, if it is `Identifiable`), the
    /// child's effects are cancelled. An action for a missing child is reported as an issue.
    public func ifCaseLet<ChildState, ChildAction, Child: Reducer>(
        _ state: CaseKeyPath<State, ChildState>, action: CaseKeyPath<Action, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> then child: () -> Child,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) -> IfCaseLetReducer<Self, Child> where Child.State == ChildState, Child.Action == ChildAction {
        IfCaseLetReducer(
            parent: self, state: AnyCasePath(state), position: CasePosition(state), action: AnyCasePath(action),
            child: child(), location: CodeLocation(fileID, filePath, line, column))
    }
}

/// A parent and a child whose state is a case of the parent's; created by `ifCaseLet`.
public struct IfCaseLetReducer<Parent: Reducer, Child: Reducer>: Reducer {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    let parent: Parent
    let state: AnyCasePath<Parent.State, Child.State>
    let position: CasePosition
    let action: AnyCasePath<Parent.Action, Child.Action>
    let child: Child
    let location: CodeLocation

    /// Runs the child, then the parent, and cancels the child's effects if it no longer exists after that.
    public func reduce(into state: inout Parent.State, action: Parent.Action) -> Effect<Parent.Action> {
        let scope = EffectScope(position)
        let first = ChildIdentity(self.state.extract(state))
        let childEffect = reduceChild(into: &state, action: action, in: scope)
        let second = childEffect == nil ? first : ChildIdentity(self.state.extract(state))
        let effect = (childEffect ?? .none).merge(with: parent.reduce(into: &state, action: action))
        let third = ChildIdentity(self.state.extract(state))
        if first == second, second == third { return effect }
        // A cancellation includes the effects before it. If a child's own action changes its identity, the effects of
        // that action belong to the new child.
        return .merge(
            second.replaces(first) ? scope.cancellation() : .none, effect,
            third.replaces(second) ? scope.cancellation() : .none)
    }

    /// Returns nil for an action of another reducer.
    private func reduceChild(
        into state: inout Parent.State, action: Parent.Action, in scope: EffectScope
    ) -> Effect<Parent.Action>? {
        guard let childAction = self.action.extract(action) else { return nil }
        guard var childState = self.state.extract(state) else {
            reportIssue(
                "An \"ifCaseLet\" received an action for a child whose state does not exist: "
                    + "\(ValueText.summary(of: action)). The state is another case: "
                    + "\(ValueText.summary(of: state)). Send actions to a child only while its state exists.",
                at: location)
            return .none
        }
        defer { state = self.state.embed(childState) }
        return scope.run { child.reduce(into: &childState, action: childAction) }.map(self.action.embed)
    }
}

/// A case of a state, as a place in the tree of reducers.
struct CasePosition: Hashable, Sendable {
    let names: [String]

    init<Root, Value>(_ path: CaseKeyPath<Root, Value>) {
        names = Case<Root>()[keyPath: path].names
    }
}
