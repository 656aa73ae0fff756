/// Runs work with other dependencies, which also apply to tasks that it starts.
///
///     withDependencies {
///         $0.apiClient.fetch = { "mocked" }
///     } operation: {
///         Feature()
///     }
public func withDependencies<Result>(
    _ update: (inout DependencyValues) throws -> Void, operation: () throws -> Result
) rethrows -> Result {
    let values = try DependencyValues.current.keepingTestValues().changed(by: update)
    return try DependencyValues.$current.withValue(values, operation: operation)
}

/// Runs asynchronous work with other dependencies, which also apply to tasks that it starts.
public func withDependencies<Result>(
    isolation: isolated (any Actor)? = #isolation,
    _ update: (inout DependencyValues) throws -> Void, operation: () async throws -> Result
) async rethrows -> Result {
    let values = try DependencyValues.current.keepingTestValues().changed(by: update)
    return try await DependencyValues.$current.withValue(values, operation: operation, isolation: isolation)
}
