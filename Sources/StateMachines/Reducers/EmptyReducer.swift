/// A reducer that does nothing.
public struct EmptyReducer<State, Action: Sendable>: Reducer {
    public typealias Body = Never

    public init() {}

    public func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
}
