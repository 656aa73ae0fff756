internal import Relays

/// Which values dependencies have by default.
public enum DependencyContext: Sendable, Hashable {
    /// Those of the running program.
    case live
    /// Those for tests; one without a value for tests fails the test that uses it.
    case test

    /// Whether this process runs tests.
    static let ofProcess: DependencyContext = TestProcess.isCurrent ? .test : .live
}
