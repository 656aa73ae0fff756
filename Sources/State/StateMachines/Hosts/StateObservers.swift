import Observation

/// The parts of a store's state that observers have read, and the notification of these observers.
@MainActor
final class StateObservers<State> {
    private var properties: [PartialKeyPath<State>: ObservedProperty<State>] = [:]
    /// True if there is neither a property nor a child. Read for each action.
    private var isUnused = true
    /// The stores of parts of the state.
    private var children: [ChildObservers] = []

    /// The number of children at which released ones are removed.
    private var childLimit = 8

    /// The observers of a part of the state.
    private struct ChildObservers {
        let isEmpty: () -> Bool?
        let changes: (_ old: State, _ new: State) -> [PropertySignal]
    }

    var childCount: Int { children.count }

    /// True if there were no reads since the last change.
    var isEmpty: Bool {
        if isUnused { return true }
        children.removeAll { $0.isEmpty() == nil }
        isUnused = properties.isEmpty && children.isEmpty
        return properties.isEmpty && children.allSatisfy { $0.isEmpty() == true }
    }

    /// Records that the current observer, if there is one, reads a property.
    func access<Value>(_ path: KeyPath<State, Value>) {
        let property =
            properties[path]
            ?? ObservedProperty { !ValueEquality.areEqual($0[keyPath: path], $1[keyPath: path]) }
        properties[path] = property
        isUnused = false
        property.signal.access()
    }

    func addChild<Part>(_ child: StateObservers<Part>, _ part: @escaping (State) -> Part) {
        isUnused = false
        if children.count >= childLimit {
            children.removeAll { $0.isEmpty() == nil }
            childLimit = max(8, 2 * children.count)
        }
        children.append(
            ChildObservers(
                isEmpty: { [weak child] in child?.isEmpty },
                changes: { [weak child] in child?.changes(from: part($0), to: part($1)) ?? [] }))
    }

    /// Returns the signals to send for a change. A changed property is removed: its observers read it again.
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

/// A property that observers have read.
private struct ObservedProperty<State> {
    let signal = PropertySignal()
    let hasChanged: (State, State) -> Bool

    init(hasChanged: @escaping (State, State) -> Bool) { self.hasChanged = hasChanged }
}

/// Represents one property of a state for Observation.
final class PropertySignal: Observable {
    private let registrar = ObservationRegistrar()
    private var value: Void { () }

    func access() { registrar.access(self, keyPath: \.value) }
    func willChange() { registrar.willSet(self, keyPath: \.value) }
    func didChange() { registrar.didSet(self, keyPath: \.value) }
}

/// Compares values whose type may or may not be `Equatable`.
enum ValueEquality {
    /// Returns true if the values are equal. Values that are not `Equatable` are unequal.
    static func areEqual<Value>(_ left: Value, _ right: Value) -> Bool {
        func compare<KnownState: Equatable>(_ left: KnownState) -> Bool { left == right as? KnownState }
        return (left as? any Equatable).map { compare($0) } ?? false
    }
}

/// A state whose properties a ``Store`` exposes separately. `@ObservableState` adds the conformance.
///
/// An observer that reads `store.count` is notified when the value of `count` changes, not of other changes. A
/// property that is not `Equatable` counts as changed with each action.
public protocol ObservableState {}
