/// How much a ``TestStore`` insists on.
public enum Exhaustivity: Sendable, Hashable {
    /// Every change of state and every action that effects send has to be asserted, and all effects have to end.
    case on
    /// Only what a test asserts is checked; the rest is skipped.
    case off
}
