/// Runs a child on its part of the state, for its actions.
public struct Scope<ParentState, ParentAction: Sendable, Child: Reducer>: Reducer {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    /// The location of the child's state: a property, or a case of an enum.
    private enum StatePath: Sendable {
        case property(any WritableKeyPath<ParentState, Child.State> & Sendable)
        case enumCase(AnyCasePath<ParentState, Child.State>, CodeLocation)
    }

    private let statePath: StatePath
    private let action: AnyCasePath<ParentAction, Child.Action>
    private let child: Child

    // Separate generic parameters: the builder needs the types that the key paths determine.
    /// Creates the scope of a child whose state is a property of the parent's.
    ///
    /// - Parameters:
    ///   - state: the path to the child's state in the parent's.
    ///   - action: the case of the parent's action that contains the child's. Other actions do not reach the child.
    ///   - child: the child's reducers, from top to bottom.
    public init<ChildState, ChildAction>(
        state: any WritableKeyPath<ParentState, ChildState> & Sendable,
        action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child
    ) where Child.State == ChildState, Child.Action == ChildAction {
        statePath = .property(state)
        self.action = AnyCasePath(action)
        self.child = child()
    }

    /// Creates the scope of a child whose state is a case of the parent's, which is an enum.
    ///
    /// An action for the child while the state is another case is reported as an issue. The child's effects continue
    /// when the state becomes another case; to end them then, use `ifCaseLet`.
    ///
    /// - Parameters:
    ///   - state: the case of the parent's state that contains the child's.
    ///   - action: the case of the parent's action that contains the child's. Other actions do not reach the child.
    ///   - child: the child's reducers, from top to bottom.
    @_disfavoredOverload
    public init<ChildState, ChildAction>(
        state: CaseKeyPath<ParentState, ChildState>, action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) where Child.State == ChildState, Child.Action == ChildAction, ParentState: CasePathable {
        statePath = .enumCase(AnyCasePath(state), CodeLocation(fileID, filePath, line, column))
        self.action = AnyCasePath(action)
        self.child = child()
    }

    /// Unavailable: exists for the compiler's message about a missing child state.
    @available(
        *, unavailable,
        message: """
            the parent's 'State' has no 'var' of this name with the type of the child's 'State'; if 'State' is an enum, mark it '@CasePathable'
            """
    )
    @_disfavoredOverload
    public init<ChildState, ChildAction>(
        state: KeyPath<MissingMember<ParentState>, MissingMember<ParentState>>,
        action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child
    ) where Child.State == ChildState, Child.Action == ChildAction { fatalError("unavailable") }

    /// Runs the child for its actions. Other actions have no effect.
    public func reduce(into state: inout ParentState, action: ParentAction) -> Effect<ParentAction> {
        guard let childAction = self.action.extract(action) else { return .none }
        switch statePath {
        case .property(let path):
            return child.reduce(into: &state[keyPath: path], action: childAction).map(self.action.embed)
        case .enumCase(let path, let location):
            guard var childState = path.extract(state) else {
                reportIssue(
                    "A \"Scope\" received an action for a child whose state does not exist: "
                        + "\(ValueText.summary(of: action)). The state is another case: "
                        + "\(ValueText.summary(of: state)). Send actions to a child only while its state exists.",
                    at: location)
                return .none
            }
            defer { state = path.embed(childState) }
            return child.reduce(into: &childState, action: childAction).map(self.action.embed)
        }
    }
}

/// Has a member of any name, for compiler messages about missing members.
@dynamicMemberLookup
public enum MissingMember<Root> {
    /// The missing member.
    public subscript(dynamicMember name: String) -> MissingMember { fatalError("unavailable") }
}
