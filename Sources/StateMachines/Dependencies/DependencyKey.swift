/// A dependency that has a value for tests, and perhaps a live one in another module.
public protocol TestDependencyKey {
    /// What a feature gets; the key itself, unless another type is named.
    associatedtype Value: Sendable = Self

    /// The value in tests.
    static var testValue: Value { get }
}

/// A dependency: what a feature uses of the world outside, replaceable in tests.
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
    // Again, so that it is inferred from `liveValue`.
    /// What a feature gets, as ``TestDependencyKey/Value``.
    associatedtype Value = Self

    /// The value outside of tests; asked for once in a process.
    static var liveValue: Value { get }
}

extension DependencyKey {
    /// Without a value for tests, the use of the dependency fails the test; it then gets the live value.
    public static var testValue: Value {
        DependencyValues.reportUnimplemented(
            "The dependency \(Self.self) has no test value, but a test uses it. Give it one with 'withDependencies', "
                + "or a static 'testValue'.")
        return liveValue
    }
}
