#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// Detects whether this process runs tests.
package enum TestProcess {
    /// Whether SwiftPM or Xcode started this process for tests, with Swift Testing or XCTest.
    package static let isCurrent: Bool = {
        // The names of the programs that run tests.
        let program = CommandLine.arguments.first.map { $0.split(separator: "/").last ?? "" } ?? ""
        return program.hasSuffix(".xctest") || program == "xctest" || program == "swiftpm-testing-helper"
            || getenv("XCTestConfigurationFilePath") != nil
    }()
}
