// `IdentifiedArray` and `IdentifiedArrayOf`.
@_exported public import IdentifiedArrays

extension Reducer {
    /// Runs a child for the element of an action, before the reducer itself.
    ///
    /// When an element is removed, or gets another id, its effects are cancelled. An action for a missing element is
    /// reported as an issue.
    public func forEach<ElementState, ElementAction, ID: Hashable & Sendable, Child: Reducer>(
        _ elements: any WritableKeyPath<State, IdentifiedArray<ID, ElementState>> & Sendable,
        action: CaseKeyPath<Action, IdentifiedAction<ID, ElementAction>>,
        @ReducerBuilder<ElementState, ElementAction> element child: () -> Child,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) -> ForEachReducer<Self, ID, Child>
    where Child.State == ElementState, Child.Action == ElementAction, ElementState: Identifiable, ElementState.ID == ID
    {
        ForEachReducer(
            parent: self, elements: elements, action: AnyCasePath(action), child: child(),
            location: CodeLocation(fileID, filePath, line, column))
    }
}

/// A parent and a child for each element of a collection; created by `forEach`.
public struct ForEachReducer<Parent: Reducer, ID: Hashable & Sendable, Child: Reducer>: Reducer
where Child.State: Identifiable, Child.State.ID == ID {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    let parent: Parent
    let elements: any WritableKeyPath<Parent.State, IdentifiedArray<ID, Child.State>> & Sendable
    let action: AnyCasePath<Parent.Action, IdentifiedAction<ID, Child.Action>>
    let child: Child
    let location: CodeLocation

    /// Runs the element's child, then the parent, and cancels the effects of removed elements.
    public func reduce(into state: inout Parent.State, action: Parent.Action) -> Effect<Parent.Action> {
        let before = state[keyPath: elements].ids
        let childEffect = reduceElement(into: &state, action: action)
        let effect = childEffect.merge(with: parent.reduce(into: &state, action: action))
        let after = state[keyPath: elements]
        guard before != after.ids else { return effect }
        let removed = before.filter { !after.contains(id: $0) }
        return .merge([effect] + removed.map { EffectScope(elements, $0).cancellation() })
    }

    private func reduceElement(into state: inout Parent.State, action: Parent.Action) -> Effect<Parent.Action> {
        guard case .element(let id, let elementAction)? = self.action.extract(action) else { return .none }
        guard state[keyPath: elements][id: id] != nil else {
            reportIssue(
                "A \"forEach\" received an action for an element that does not exist: \(ValueText.summary(of: action)). "
                    + "Send actions to an element only while it is in the collection.", at: location)
            return .none
        }
        let effect = EffectScope(elements, id).run {
            child.reduce(into: &state[keyPath: elements][id: id]!, action: elementAction)
        }
        return effect.map { [path = self.action] in path.embed(.element(id: id, action: $0)) }
    }
}

/// An action of one element of a collection.
@CasePathable
public enum IdentifiedAction<ID: Hashable & Sendable, Action: Sendable>: Sendable {
    /// An action of the element with this id.
    case element(id: ID, action: Action)
}

extension Case {
    /// The actions of the element with an id: `\.rows[id: 7].rename`.
    public subscript<ID: Hashable & Sendable, Action: Sendable>(id id: ID) -> Case<Action>
    where Value == IdentifiedAction<ID, Action> {
        appending(
            "[id: \(id)]", embed: { .element(id: id, action: $0) },
            extract: { action in
                guard case .element(let other, let action) = action, other == id else { return nil }
                return action
            })
    }
}

extension IdentifiedAction: Equatable where Action: Equatable {}

/// The actions of elements of the state of a reducer.
public typealias IdentifiedActionOf<R: Reducer> = IdentifiedAction<R.State.ID, R.Action>
where R.State: Identifiable, R.State.ID: Sendable
