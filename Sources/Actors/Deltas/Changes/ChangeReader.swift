package import TrebuchetWire

/// Takes the successive changes of a state, and checks that each continues the version that was taken before.
package struct ChangeReader: Sendable {
    /// The mark of the version that was taken last.
    private var stamp: ChangeStamp?
    /// True if all members of a record track their changes; nil before the first call.
    private var isComplete: Bool?

    package init() {}

    /// Returns the changes from the version that was taken last to this one, with values encoded by the coder.
    ///
    /// - Parameter take: `takeChanges()`, from a context that knows the state's type.
    /// - Returns: nil if the whole value must be sent: at first, when changes are unknown, and when the value is not a successor
    ///   of that version.
    package mutating func take<State: DeltaState>(
        from state: inout State, with coder: ValueCoder,
        _ take: (inout State) -> StateChanges? = { $0.takeChanges() }
    ) -> StateChanges? {
        if isComplete == nil { isComplete = Self.isComplete(state) }
        return StateChanges.$coder.withValue(coder) {
            guard let changes = take(&state), changes.isKnown else {
                // No change can be sent, but the start of the next changes is recorded.
                stamp = take(&state)?.end
                return nil
            }
            defer { stamp = changes.end }
            return changes.start == stamp && isComplete == true ? changes : nil
        }
    }

    private static func isComplete(_ state: some DeltaState) -> Bool {
        let names = UnnamedMembers.of(state)
        guard let first = names.first else { return true }
        ProgrammerWarning.reportOnce(
            "deltaMembers of \(type(of: state)) lacks '\(first.prefix(64).filter { $0.isLetter || $0.isNumber || "._".contains($0) })'; until it is added, each change sends and stores the whole state"
        )
        return false
    }
}
