/// Runs a child on the part of the state, and for the actions, that are the child's.
public struct Scope<ParentState, ParentAction: Sendable, Child: Reducer>: Reducer {
    /// None: ``reduce(into:action:)`` does it all.
    public typealias Body = Never
    private enum Part: Sendable {
        case property(any WritableKeyPath<ParentState, Child.State> & Sendable)
        case enumCase(AnyCasePath<ParentState, Child.State>, CodeLocation)
    }

    private let part: Part
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
        part = .property(state)
        self.action = AnyCasePath(action)
        self.child = child()
    }

    /// A child whose state is a case of the parent's, which is an enum.
    ///
    /// An action for the child while the state is another case is reported as an issue. The child's effects go on when the
    /// state becomes another case; where they are to end then, use `ifCaseLet`.
    ///
    /// - Parameters:
    ///   - state: the case of the parent's state that is the child's.
    ///   - action: the case of the parent's action that carries the child's. Other actions do not reach the child.
    ///   - child: the child's reducers, from the top down.
    @_disfavoredOverload
    public init<ChildState, ChildAction>(
        state: CaseKeyPath<ParentState, ChildState>, action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) where Child.State == ChildState, Child.Action == ChildAction, ParentState: CasePathable {
        part = .enumCase(AnyCasePath(state), CodeLocation(fileID, filePath, line, column))
        self.action = AnyCasePath(action)
        self.child = child()
    }

    /// A child whose state the parent's has not: for what the compiler says of it.
    @available(
        *, unavailable,
        message: """
            the parent's 'State' has no 'var' of this name with the type of the child's 'State'; if it is an enum, mark it '@CasePathable'
            """
    )
    @_disfavoredOverload
    public init<ChildState, ChildAction>(
        state: KeyPath<MissingPart<ParentState>, MissingPart<ParentState>>,
        action: CaseKeyPath<ParentAction, ChildAction>,
        @ReducerBuilder<ChildState, ChildAction> child: () -> Child
    ) where Child.State == ChildState, Child.Action == ChildAction { fatalError("unavailable") }

    /// Runs the child for its own actions; changes nothing for others.
    public func reduce(into state: inout ParentState, action: ParentAction) -> Effect<ParentAction> {
        guard let childAction = self.action.extract(action) else { return .none }
        switch part {
        case .property(let path):
            return child.reduce(into: &state[keyPath: path], action: childAction).map(self.action.embed)
        case .enumCase(let path, let location):
            guard var childState = path.extract(state) else {
                reportIssue(
                    "A \"Scope\" received an action for a child whose state is not there: "
                        + "\(ValueText.summary(of: action)). The state is another case: "
                        + "\(ValueText.summary(of: state)). Send a child's actions only while it is there.",
                    at: location)
                return .none
            }
            defer { state = path.embed(childState) }
            return child.reduce(into: &childState, action: childAction).map(self.action.embed)
        }
    }
}

/// Has a part of any name, for messages of the compiler about parts that are not there.
@dynamicMemberLookup
public enum MissingPart<Root> {
    /// The part, which is not there.
    public subscript(dynamicMember name: String) -> MissingPart { fatalError("unavailable") }
}
