/// The strictness of a ``TestStore``.
public enum Exhaustivity: Sendable, Hashable {
    /// The test must assert every change of state and every action that effects send, and all effects must end.
    case on
    /// Only explicit assertions are checked; the rest is skipped.
    ///
    /// - showSkippedAssertions: whether skipped assertions are shown, as known issues, which do not fail the test. A
    ///   test of XCTest prints them.
    case off(showSkippedAssertions: Bool)

    /// Only explicit assertions are checked; the rest is skipped silently.
    public static let off = Self.off(showSkippedAssertions: false)

    /// Reports a missing assertion, which an exhaustive test must contain.
    func report(_ message: String, at location: CodeLocation) {
        switch self {
        case .on: reportIssue(message, at: location)
        case .off(showSkippedAssertions: true): showSkipped(message, at: location)
        case .off: break
        }
    }
}
