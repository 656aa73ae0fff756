/// A dependency with a value for tests, and possibly a live value in another module.
public protocol TestDependencyKey {
    /// The type of the dependency; the key itself by default.
    associatedtype Value: Sendable = Self

    /// The value in tests.
    static var testValue: Value { get }
}

/// A dependency of a feature on the outside world, replaceable in tests.
///
///     struct APIClient: DependencyKey {
///         var fetch: @Sendable () async throws -> String
///         static let liveValue = APIClient { try await download() }
///         static let testValue = APIClient(fetch: unimplemented("APIClient.fetch"))
///     }
///     extension DependencyValues {
///         var apiClient: APIClient {
///             get { self[APIClient.self] }
///             set { self[APIClient.self] = newValue }
///         }
///     }
public protocol DependencyKey: TestDependencyKey {
    // Declared again, so that it is inferred from `liveValue`.
    /// The type of the dependency, as ``TestDependencyKey/Value``.
    associatedtype Value = Self

    /// The value outside tests, created once per process.
    static var liveValue: Value { get }
}

extension DependencyKey {
    /// The default for a dependency without a test value: its use fails the test, and returns the live value.
    public static var testValue: Value {
        DependencyValues.reportUnimplemented(
            "The dependency \(Self.self) has no test value, but a test uses it. Give it one with 'withDependencies', "
                + "or a static 'testValue'.")
        return liveValue
    }
}
