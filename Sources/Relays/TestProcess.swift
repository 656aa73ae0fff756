#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// Whether this process runs tests.
package enum TestProcess {
    /// Whether SwiftPM or Xcode has started it for tests, of Swift Testing or of XCTest.
    package static let isCurrent: Bool = {
        // The names of the programs in which they run.
        let program = CommandLine.arguments.first.map { $0.split(separator: "/").last ?? "" } ?? ""
        return program.hasSuffix(".xctest") || program == "xctest" || program == "swiftpm-testing-helper"
            || getenv("XCTestConfigurationFilePath") != nil
    }()
}
