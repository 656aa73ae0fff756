extension Reducer {
    /// Runs a child whose state may be nil, before the reducer itself.
    ///
    /// When the state becomes nil, or that of another child (a different `id`, if it is `Identifiable`), the child's
    /// effects are cancelled. An action for a missing child is reported as an issue.
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

/// A parent and a child whose state may be nil; created by
/// ``Reducer/ifLet(_:action:then:fileID:filePath:line:column:)``.
public struct IfLetReducer<Parent: Reducer, Child: Reducer>: Reducer {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    let parent: Parent
    let state: any WritableKeyPath<Parent.State, Child.State?> & Sendable
    let action: AnyCasePath<Parent.Action, Child.Action>
    let child: Child
    let location: CodeLocation

    /// Runs the child, then the parent, and cancels the child's effects if it no longer exists after that.
    public func reduce(into state: inout Parent.State, action: Parent.Action) -> Effect<Parent.Action> {
        let scope = EffectScope(self.state)
        let first = ChildIdentity(state[keyPath: self.state])
        let childEffect = reduceChild(into: &state, action: action, in: scope)
        let second = childEffect == nil ? first : ChildIdentity(state[keyPath: self.state])
        let effect = (childEffect ?? .none).merge(with: parent.reduce(into: &state, action: action))
        let third = ChildIdentity(state[keyPath: self.state])
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
        guard state[keyPath: self.state] != nil else {
            reportIssue(
                "An \"ifLet\" received an action for a child whose state is nil: \(ValueText.summary(of: action)). "
                    + "Send actions to a child only while its state exists.", at: location)
            return .none
        }
        return scope.run { child.reduce(into: &state[keyPath: self.state]!, action: childAction) }
            .map(self.action.embed)
    }
}

/// The identity of a child, as far as its state contains it.
enum ChildIdentity: Equatable {
    case none
    case unnamed
    case named(AnyHashable)

    init<State>(_ state: State?) {
        func id(_ value: some Identifiable) -> AnyHashable { AnyHashable(value.id) }
        guard let state else {
            self = .none
            return
        }
        self = (state as? any Identifiable).map { .named(id($0)) } ?? .unnamed
    }

    /// Returns true if there was another child before.
    func replaces(_ other: Self) -> Bool { other != .none && self != other }
}
