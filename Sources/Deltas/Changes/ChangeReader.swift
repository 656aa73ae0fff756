package import TrebuchetWire

/// Takes the changes of a state time after time, and knows whether they continue what was taken before.
package struct ChangeReader: Sendable {
    /// The mark of the version that was taken last.
    private var mark: ChangeMark?

    package init() {}

    /// The changes from the version that was taken last to this one, their values encoded by the coder; nil when the whole value must be sent: at
    /// first, when changes are not known, and when the value is no successor of that version.
    ///
    /// - Parameter take: `takeChanges()`, from where the state's type is known.
    package mutating func take<State: DeltaState>(
        from state: inout State, with coder: ValueCoder,
        _ take: (inout State) -> StateChanges? = { $0.takeChanges() }
    ) -> StateChanges? {
        StateChanges.$coder.withValue(coder) {
            guard let changes = take(&state), changes.isKnown else {
                // Nothing is left to be told now, but where the next changes begin.
                mark = take(&state)?.end
                return nil
            }
            defer { mark = changes.end }
            return changes.start == mark ? changes : nil
        }
    }
}
