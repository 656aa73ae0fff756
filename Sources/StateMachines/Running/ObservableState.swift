/// A state whose properties a ``Store`` offers one by one; `@ObservableState` writes the conformance.
///
/// An observer that reads `store.count` is told when `count` has another value, not of other changes. A property that is
/// not `Equatable` counts as changed with each action.
public protocol ObservableState {}
