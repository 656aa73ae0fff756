import Observation

/// What observers have read of a store's state, and whom to tell when it changes.
@MainActor
final class StateObservers<State> {
    private var properties: [PartialKeyPath<State>: ObservedProperty<State>] = [:]
    /// Whether there is neither a property nor a child; asked with each action.
    private var isUnused = true
    /// The stores of parts of the state.
    private var children: [Child] = []

    /// How many children there may be before those that have gone are looked for.
    private var childLimit = 8

    private struct Child {
        let isEmpty: () -> Bool?
        let changes: (_ old: State, _ new: State) -> [PropertySignal]
    }

    var childCount: Int { children.count }

    /// Whether nobody has read anything since it last changed.
    var isEmpty: Bool {
        if isUnused { return true }
        children.removeAll { $0.isEmpty() == nil }
        isUnused = properties.isEmpty && children.isEmpty
        return properties.isEmpty && children.allSatisfy { $0.isEmpty() == true }
    }

    /// Notes that the observer which runs now, if one does, reads a property.
    func access<Value>(_ path: KeyPath<State, Value>) {
        let property =
            properties[path]
            ?? ObservedProperty { !ValueEquality.areEqual($0[keyPath: path], $1[keyPath: path]) }
        properties[path] = property
        isUnused = false
        property.signal.access()
    }

    func add<Part>(_ child: StateObservers<Part>, _ part: @escaping (State) -> Part) {
        isUnused = false
        if children.count >= childLimit {
            children.removeAll { $0.isEmpty() == nil }
            childLimit = max(8, 2 * children.count)
        }
        children.append(
            Child(
                isEmpty: { [weak child] in child?.isEmpty },
                changes: { [weak child] in child?.changes(from: part($0), to: part($1)) ?? [] }))
    }

    /// The signals to give for a change. A property that has changed is forgotten: its observers look again.
    func changes(from old: State, to new: State) -> [PropertySignal] {
        var signals: [PropertySignal] = []
        for (path, property) in properties where property.hasChanged(old, new) {
            signals.append(property.signal)
            properties[path] = nil
        }
        for child in children { signals += child.changes(old, new) }
        return signals
    }
}

private struct ObservedProperty<State> {
    let signal = PropertySignal()
    let hasChanged: (State, State) -> Bool

    init(hasChanged: @escaping (State, State) -> Bool) { self.hasChanged = hasChanged }
}

/// Stands for one property of a state in the eyes of Observation.
final class PropertySignal: Observable {
    private let registrar = ObservationRegistrar()
    private var value: Void { () }

    func access() { registrar.access(self, keyPath: \.value) }
    func willChange() { registrar.willSet(self, keyPath: \.value) }
    func didChange() { registrar.didSet(self, keyPath: \.value) }
}

/// Compares values whose type may or may not be `Equatable`.
enum ValueEquality {
    /// Whether the values are equal; values that cannot be compared are not.
    static func areEqual<Value>(_ left: Value, _ right: Value) -> Bool {
        func compare<Known: Equatable>(_ left: Known) -> Bool { left == right as? Known }
        return (left as? any Equatable).map { compare($0) } ?? false
    }
}

/// A state whose properties a ``Store`` offers one by one; `@ObservableState` writes the conformance.
///
/// An observer that reads `store.count` is told when `count` has another value, not of other changes. A property that is
/// not `Equatable` counts as changed with each action.
public protocol ObservableState {}
