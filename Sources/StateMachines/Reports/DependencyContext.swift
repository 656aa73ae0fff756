#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Which values dependencies have by default.
public enum DependencyContext: Sendable, Hashable {
    /// Those of the running program.
    case live
    /// Those for tests; one without a value for tests fails the test that uses it.
    case test

    /// Whether this process runs tests.
    static let ofProcess: DependencyContext = {
        // The names of the programs in which SwiftPM and Xcode run tests.
        let program = CommandLine.arguments.first.map { $0.split(separator: "/").last ?? "" } ?? ""
        let isTest =
            program.hasSuffix(".xctest") || program == "xctest" || program == "swiftpm-testing-helper"
            || getenv("XCTestConfigurationFilePath") != nil
        return isTest ? .test : .live
    }()
}
