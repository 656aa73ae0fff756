internal import Platform

// Only debug builds use the testing library, so that a released program does not depend on it.
#if DEBUG && canImport(Testing)
    import Testing
#endif

/// Reports a mistake in the use of the library.
///
/// In a test, with Swift Testing or XCTest, it fails the test at this location. If no test can be failed, the test
/// process ends. Outside tests the message is written to standard error, and the program continues.
public func reportIssue(
    _ message: String, fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
) {
    reportIssue(message, at: CodeLocation(fileID, filePath, line, column))
}

func reportIssue(_ message: String, at location: CodeLocation) {
    if let sink = IssueSink.current { return sink(message) }
    #if DEBUG && canImport(Testing)
        if Test.current != nil || TestLibrary.isSwiftTestingAlone {
            let sourceLocation = SourceLocation(
                fileID: "\(location.fileID)", filePath: "\(location.filePath)", line: Int(location.line),
                column: Int(location.column))
            Issue.record(Comment(rawValue: message), sourceLocation: sourceLocation)
            return
        }
    #endif
    if DependencyContext.ofProcess == .test, !TestLibrary.isSwiftTestingAlone, let fail = TestLibrary.fail {
        return fail(message, location.filePath, location.line)
    }
    StandardStream.error.write(soon: "\(location.fileID):\(location.line): \(message)")
    // A test that cannot be failed must not pass.
    if DependencyContext.ofProcess == .test {
        fatalError("the issue could not be recorded in a test (Swift Testing requires a debug build):  \(message)")
    }
}

/// Shows a skipped assertion of a test, without failing it.
func showSkipped(_ message: String, at location: CodeLocation) {
    if let sink = IssueSink.current { return sink("(skipped) \(message)") }
    #if DEBUG && canImport(Testing)
        if Test.current != nil {
            let sourceLocation = SourceLocation(
                fileID: "\(location.fileID)", filePath: "\(location.filePath)", line: Int(location.line),
                column: Int(location.column))
            return withKnownIssue("skipped", sourceLocation: sourceLocation) {
                Issue.record(Comment(rawValue: message), sourceLocation: sourceLocation)
            }
        }
    #endif
    StandardStream.error.write(soon: "\(location.fileID):\(location.line): skipped: \(message)")
}

/// Receives reports instead of the running test; for the tests of this module.
enum IssueSink {
    @TaskLocal static var current: (@Sendable (String) -> Void)?
}
