extension Reducer {
    /// Runs a child whose state may be nil, before the reducer itself.
    ///
    /// When the state becomes nil, or that of another child (its `id` is another, if it is `Identifiable`), the child's
    /// effects are cancelled. An action for a child that is not there is reported as an issue.
    public func ifLet<ChildState, ChildAction, Child: Reducer>(
        _ state: any WritableKeyPath<State, ChildState?> & Sendable, action: CaseKeyPath<Action, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> then child: () -> Child,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) -> IfLetReducer<Self, Child> where Child.State == ChildState, Child.Action == ChildAction {
        IfLetReducer(
            parent: self, state: state, action: AnyCasePath(action), child: child(),
            location: CodeLocation(fileID, filePath, line, column))
    }
}

/// A parent and a child whose state may be nil; made by ``Reducer/ifLet(_:action:then:fileID:filePath:line:column:)``.
public struct IfLetReducer<Parent: Reducer, Child: Reducer>: Reducer {
    /// None: ``reduce(into:action:)`` does it all.
    public typealias Body = Never
    let parent: Parent
    let state: any WritableKeyPath<Parent.State, Child.State?> & Sendable
    let action: AnyCasePath<Parent.Action, Child.Action>
    let child: Child
    let location: CodeLocation

    /// Runs the child, then the parent, and cancels the child's effects when it is gone after that.
    public func reduce(into state: inout Parent.State, action: Parent.Action) -> Effect<Parent.Action> {
        let scope = EffectScope(self.state)
        let childEffect = reduceChild(into: &state, action: action, in: scope)
        let before = ChildIdentity(state[keyPath: self.state])
        let effect = childEffect.merge(with: parent.reduce(into: &state, action: action))
        if case .nobody = before { return effect }
        if before == ChildIdentity(state[keyPath: self.state]) { return effect }
        return effect.merge(with: scope.cancellation())
    }

    private func reduceChild(
        into state: inout Parent.State, action: Parent.Action, in scope: EffectScope
    ) -> Effect<Parent.Action> {
        guard let childAction = self.action.extract(action) else { return .none }
        guard state[keyPath: self.state] != nil else {
            reportIssue(
                "An \"ifLet\" received an action for a child whose state is nil: \(ValueText.summary(of: action)). "
                    + "Send a child's actions only while it is there.", at: location)
            return .none
        }
        return scope.run { child.reduce(into: &state[keyPath: self.state]!, action: childAction) }
            .map(self.action.embed)
    }
}

/// Who a child is, as far as its state tells.
enum ChildIdentity: Equatable {
    case nobody
    case somebody
    case named(AnyHashable)

    init<State>(_ state: State?) {
        func id(_ value: some Identifiable) -> AnyHashable { AnyHashable(value.id) }
        guard let state else {
            self = .nobody
            return
        }
        self = (state as? any Identifiable).map { .named(id($0)) } ?? .somebody
    }
}
