/// The error of an ``unimplemented(_:fileID:filePath:line:column:)`` function.
public struct Unimplemented: Error, Hashable, CustomStringConvertible {
    /// The name of the function: `APIClient.fetch`.
    public let name: String

    public var description: String { "\(name) is unimplemented; give it a value with 'withDependencies'" }
}

/// Returns a function for the test value of a dependency. A call fails the test, and throws ``Unimplemented``.
public func unimplemented<each Argument, Result>(
    _ name: String,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
) -> @Sendable (repeat each Argument) throws -> Result {
    let location = CodeLocation(fileID, filePath, line, column)
    return { (_: repeat each Argument) throws -> Result in
        reportIssue("Unimplemented: \(name). Give it a value with 'withDependencies'.", at: location)
        throw Unimplemented(name: name)
    }
}

/// Returns a function for the test value of a dependency. A call fails the test, and returns the placeholder.
public func unimplemented<each Argument, Result>(
    _ name: String, placeholder: @escaping @autoclosure @Sendable () -> Result,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
) -> @Sendable (repeat each Argument) -> Result {
    let location = CodeLocation(fileID, filePath, line, column)
    return { (_: repeat each Argument) -> Result in
        reportIssue("Unimplemented: \(name). Give it a value with 'withDependencies'.", at: location)
        return placeholder()
    }
}
