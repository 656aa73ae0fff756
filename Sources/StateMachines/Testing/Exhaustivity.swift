/// How much a ``TestStore`` insists on.
public enum Exhaustivity: Sendable, Hashable {
    /// Every change of state and every action that effects send has to be asserted, and all effects have to end.
    case on
    /// Only what a test asserts is checked; the rest is skipped.
    ///
    /// - showSkippedAssertions: whether what is skipped is shown, as known issues, which fail no test. A test of XCTest prints it.
    case off(showSkippedAssertions: Bool)

    /// Only what a test asserts is checked; the rest is skipped without a word.
    public static let off = Self.off(showSkippedAssertions: false)

    /// Reports what an exhaustive test has to assert.
    func report(_ message: String, at location: CodeLocation) {
        switch self {
        case .on: reportIssue(message, at: location)
        case .off(showSkippedAssertions: true): showSkipped(message, at: location)
        case .off: break
        }
    }
}
