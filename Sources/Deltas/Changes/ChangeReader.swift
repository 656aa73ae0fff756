package import TrebuchetWire

/// Takes the changes of a state time after time, and knows whether they continue what was taken before.
package struct ChangeReader: Sendable {
    /// The mark of the version that was taken last.
    private var mark: ChangeMark?
    /// Whether all members of a record tell of their changes; nil before the first.
    private var isComplete: Bool?

    package init() {}

    /// The changes from the version that was taken last to this one, their values encoded by the coder; nil when the whole value must be sent: at
    /// first, when changes are not known, and when the value is no successor of that version.
    ///
    /// - Parameter take: `takeChanges()`, from where the state's type is known.
    package mutating func take<State: DeltaState>(
        from state: inout State, with coder: ValueCoder,
        _ take: (inout State) -> StateChanges? = { $0.takeChanges() }
    ) -> StateChanges? {
        if isComplete == nil { isComplete = Self.isComplete(state) }
        return StateChanges.$coder.withValue(coder) {
            guard let changes = take(&state), changes.isKnown else {
                // Nothing is left to be told now, but where the next changes begin.
                mark = take(&state)?.end
                return nil
            }
            defer { mark = changes.end }
            return changes.start == mark && isComplete == true ? changes : nil
        }
    }

    private static func isComplete(_ state: some DeltaState) -> Bool {
        let names = UnnamedMembers.of(state)
        guard let first = names.first else { return true }
        ProgrammerNote.tell(
            "deltaMembers of \(type(of: state)) lacks '\(first.prefix(64).filter { $0.isLetter || $0.isNumber || "._".contains($0) })': until it is there, the whole state is sent and kept at each change"
        )
        return false
    }
}
